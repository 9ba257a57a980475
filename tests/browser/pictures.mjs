// Takes a picture of a page in each width and theme: node pictures.mjs FOLDER PAGE.html OUT

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, file, out] = process.argv.slice(2);
const require = createRequire(folder + '/pictures.mjs');
const { default: puppeteer } = await import(pathToFileURL(require.resolve('puppeteer-core')).href);
const chromium = process.env.PATH.split(':').map((f) => f + '/chromium').find(existsSync);
const browser = await puppeteer.launch({ executablePath: chromium,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
const page = await browser.newPage();
for (const [width, height] of [[1280, 1600], [390, 1600]]) {
  for (const scheme of ['light', 'dark']) {
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    await page.goto(pathToFileURL(file).href);
    await page.screenshot({ path: `${out}/report-${width}-${scheme}.png` });
  }
}
await browser.close();
