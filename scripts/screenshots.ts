// `npm run screenshots`: takes the pictures of docs/images/ anew: every page of the console in both themes, of an hour in which
// five things go wrong. `--out <folder>` writes elsewhere; names of pictures as arguments take only these.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startChromium } from '../test/support/chromium.ts';
import { startIncidents } from './screenshots/incidents.ts';
import { picturesOf, THEMES, takePicture, windowFor } from './screenshots/pictures.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({ allowPositionals: true, options: { out: { type: 'string' } } });
const out = resolve(values.out ?? join(root, 'docs/images'));

const ends: (() => unknown)[] = [];
const scope = { teardown: (end: () => unknown) => void ends.unshift(end), log: () => {} };
try {
  const incidents = await startIncidents(scope);
  const browser = await startChromium(scope);
  const pictures = await picturesOf(incidents);
  mkdirSync(out, { recursive: true });
  if (positionals.length === 0) for (const name of readdirSync(out)) rmSync(join(out, name));
  let total = 0;
  for (const theme of THEMES) {
    const window = await windowFor(browser, incidents, theme);
    for (const picture of pictures) {
      if (positionals.length > 0 && !positionals.includes(picture.name)) continue;
      const bytes = await takePicture(window, incidents, picture);
      total += bytes.length;
      writeFileSync(join(out, `${picture.name}-${theme}.png`), bytes);
      console.log(`${picture.name}-${theme}.png ${Math.round(bytes.length / 1_000)} kB`);
    }
  }
  console.log(`${Math.round(total / 1_000)} kB`);
} finally {
  for (const end of ends) await end();
}
