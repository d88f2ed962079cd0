// `npm run alert-texts`: fires each rule of Holdfast and writes its text into docs/alerts.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { openColumnar } from '../test/support/columnar.ts';
import { alertTexts, withAlertTexts } from './alert-texts.ts';

const page = new URL('../docs/alerts.md', import.meta.url);
const columnar = await openColumnar();
const ends: (() => unknown)[] = [() => columnar.close()];
try {
  const section = await alertTexts({ teardown: (end) => void ends.push(end), log: console.log }, columnar);
  writeFileSync(page, withAlertTexts(readFileSync(page, 'utf8'), section));
  console.log('written: docs/alerts.md');
} finally {
  for (const end of ends.reverse()) await end();
}
