import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { startIncidents } from '../../scripts/screenshots/incidents.ts';
import {
  type Picture,
  picturesOf,
  SIZE,
  type Theme,
  takePicture,
  windowFor,
} from '../../scripts/screenshots/pictures.ts';
import { difference, inkOf, readPng } from '../../scripts/screenshots/png.ts';
import { startChromium } from '../support/chromium.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const IMAGES = join(root, 'docs/images');

/** What the fonts of another machine and a changed sentence may make; the other theme differs by more than 150. */
const MOST_DIFFERENT = 14;
/** Pages that are looked at anew: those that are drawn in a way of their own. */
const LOOKED_AT: readonly string[] = [
  'now',
  'past',
  'stories',
  'story',
  'actor',
  'record',
  'area-router',
  'area-trace',
];

test('[C15] the pictures of the documents are small and of one size, in both themes', (t) => {
  const files = readdirSync(IMAGES);
  t.true(files.length >= 20);
  let total = 0;
  for (const file of files) {
    const bytes = readFileSync(join(IMAGES, file));
    total += bytes.length;
    t.regex(file, /^[a-z-]+-(light|dark)\.png$/);
    const { width, height } = readPng(bytes);
    t.deepEqual({ width, height }, SIZE, file);
    t.true(
      files.includes(
        file.replace(/(light|dark)\.png$/, (_, theme) => `${theme === 'dark' ? 'light' : 'dark'}.png`),
      ),
    );
  }
  t.true(total < 3_000_000, `${total} bytes`);
});

test('[C15] the pages still look as in the pictures of the documents', async (t) => {
  t.timeout(480_000);
  const incidents = await startIncidents(t);
  const browser = await startChromium(t);
  const pictures = await picturesOf(incidents);
  let compared = 0;
  const compare = async (theme: Theme, those: readonly Picture[]) => {
    const window = await windowFor(browser, incidents, theme);
    for (const picture of those) {
      const file = join(IMAGES, `${picture.name}-${theme}.png`);
      const [drawn, now] = [
        readPng(readFileSync(file)),
        readPng(await takePicture(window, incidents, picture)),
      ];
      const differs = difference(drawn, now);
      const ink = inkOf(now) / inkOf(drawn);
      const hint = `${picture.name}-${theme}.png: npm run screenshots takes the pictures anew`;
      t.true(differs <= MOST_DIFFERENT, `it differs by ${differs.toFixed(1)} from ${hint}`);
      t.true(ink > 0.5 && ink < 2, `it shows ${ink.toFixed(2)} times as much as ${hint}`);
      compared += 1;
    }
  };
  const those = pictures.filter(({ name }) => LOOKED_AT.includes(name));
  await compare('light', those);
  await compare('dark', those.slice(0, 1));
  t.is(compared, LOOKED_AT.length + 1);
});
