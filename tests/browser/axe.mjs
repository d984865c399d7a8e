// Find violations of the rules of WCAG 2.2, levels A and AA, with axe-core.
// As a program, for pages in files: node axe.mjs FILE: {"browser", "playwright", "axe", "pages": [address, ...]}; prints
// {"address, light": [[rule, impact, the first elements], ...]} as JSON, also for the dark scheme.
import { readFileSync } from 'node:fs';

const LEVELS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

export async function violations(page, source, css) {
  await page.evaluate(source);
  return page.evaluate(async ([css, levels]) => {
    const found = await window.axe.run({ include: [[css]] }, { runOnly: levels, resultTypes: ['violations'] });
    return found.violations.map((one) => [one.id, one.impact,
      one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary.split('\n').slice(1, 2).join('').trim()}`)]);
  }, [css, LEVELS]);
}

if (process.argv[1].endsWith('axe.mjs')) {
  const asked = JSON.parse(readFileSync(process.argv[2], 'utf8'));
  const { chromium } = await import(asked.playwright);
  const browser = await chromium.connect(asked.browser), source = readFileSync(asked.axe, 'utf8');
  const report = {};
  try {
    for (const address of asked.pages) {
      for (const colorScheme of ['light', 'dark']) {
        const page = await browser.newPage({ colorScheme });
        await page.goto(address, { waitUntil: 'load' });
        report[`${address.split('/').pop()}, ${colorScheme}`] = await violations(page, source, 'html');
        await page.close();
      }
    }
  } finally {
    await browser.close();
  }
  console.log(JSON.stringify(report));
}
