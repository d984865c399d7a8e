// Open JupyterLab's first page as a learner does, click a lesson, run it, look at the page again; report as JSON.
// node welcome.mjs '{"url", "browser", "playwright", "axe", "shots", "lesson"}'
import { readFileSync } from 'node:fs';
import { violations } from './axe.mjs';

const asked = JSON.parse(process.argv[2]);
const { chromium } = await import(asked.playwright);
const browser = await chromium.connect(asked.browser);
const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
page.setDefaultTimeout(90_000);
const report = { outside: [] };
page.on('request', (request) => {
  const host = new URL(request.url()).hostname;
  if (!['127.0.0.1', 'localhost', ''].includes(host)) report.outside.push(request.url());
});
const seen = async (name) => {
  await page.waitForSelector('.jp-MarkdownViewer table');
  await page.waitForTimeout(1500);            // what pops up has had time to
  await page.screenshot({ path: `${asked.shots}/${name}.png` });
  return {
    address: new URL(page.url()).pathname,
    links: await page.locator('.jp-MarkdownViewer table a').count(),
    picture: await page.locator('.jp-MarkdownViewer img').evaluate((it) => [it.naturalWidth, it.align]),
    row: await page.locator('.jp-MarkdownViewer tr', { hasText: asked.lesson }).innerText(),
    over: await page.locator('.Toastify__toast, .jp-Dialog').allTextContents(),
  };
};
try {
  await page.goto(asked.url, { waitUntil: 'domcontentloaded' });
  report.before = await seen('welcome');
  await page.locator('.jp-MarkdownViewer table a', { hasText: 'For teachers' }).click();
  await page.waitForSelector('.jp-MarkdownViewer h1:has-text("For teachers")');
  report.teachers = new URL(page.url()).pathname;
  await page.screenshot({ path: `${asked.shots}/teachers.png` });
  await page.evaluate(() => window.jupyterapp.commands.execute('application:close'));
  await page.locator('.jp-MarkdownViewer table a', { hasText: asked.lesson }).click();
  await page.waitForFunction(() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle');
  report.path = await page.evaluate(() => window.jupyterapp.shell.currentWidget.context.path);
  await page.evaluate(() => window.jupyterapp.commands.execute('notebook:run-all-cells'));
  await page.waitForSelector('.jp-OutputArea-output');
  await page.screenshot({ path: `${asked.shots}/lesson.png` });
  report.over = await page.locator('.Toastify__toast, .jp-Dialog').allTextContents();
  await page.goto(`${asked.url}/lab/tree/welcome.md`, { waitUntil: 'domcontentloaded' });
  report.after = await seen('again');
  report.axe = [];
  for (const theme of ['JupyterLab Light', 'JupyterLab Dark']) {
    await page.evaluate((theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme }), theme);
    await page.waitForFunction((theme) => document.body.dataset.jpThemeName === theme, theme);
    await page.waitForTimeout(500);
    report.axe.push(await violations(page, readFileSync(asked.axe, 'utf8'), '.jp-MarkdownViewer'));
  }
} catch (error) {
  report.failed = String(error);
  await page.screenshot({ path: `${asked.shots}/failed.png` }).catch(() => {});
} finally {
  await browser.close();
}
console.log(JSON.stringify(report));
