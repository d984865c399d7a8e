// Overflow of the slides of a page in a window of 1280 x 720: node slides.mjs PLAYWRIGHT ADDRESS FILE [SHOTS]
// Prints [[number, height, width], ...] of the slides that do not fit, after the count of all.
const [, , playwright, address, file, shots] = process.argv;
const { chromium } = await import(playwright);
const browser = await chromium.connect(address);
const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
await page.goto(`file://${file}`);
const sizes = await page.evaluate(() => [...document.querySelectorAll('section')].map((s, i) => [i + 1, s.scrollHeight, s.scrollWidth]));
console.log(JSON.stringify([sizes.length, sizes.filter(([, height, width]) => height > 721 || width > 1281)]));
if (shots) for (const [i] of sizes) await page.locator('section').nth(i - 1).screenshot({ path: `${shots}/${String(i).padStart(2, '0')}.png` });
await page.close();
process.exit(0);
