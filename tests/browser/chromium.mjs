// A headless Chromium that the tests share: prints the address to connect to, and ends with its standard input.
// node chromium.mjs PLAYWRIGHT CHROMIUM
const { chromium } = await import(process.argv[2]);
const server = await chromium.launchServer({ executablePath: process.argv[3], args: ['--no-sandbox'] });
console.log(server.wsEndpoint());
process.stdin.resume();
process.stdin.on('end', async () => { await server.close(); process.exit(0); });
