import { readFileSync } from 'node:fs';
import test from 'ava';
import { alertTexts, withAlertTexts } from '../../scripts/alert-texts.ts';
import { documentedRules } from '../../src/plugins/alerts/index.ts';
import { type ColumnarRig, openColumnar } from '../support/columnar.ts';

let columnar: ColumnarRig;
test.before(async () => {
  columnar = await openColumnar();
});
test.after.always(() => columnar.close());

test('[O17] docs/alerts.md shows the text of every rule, as firing it gives it', async (t) => {
  const page = readFileSync(new URL('../../docs/alerts.md', import.meta.url), 'utf8');
  const section = await alertTexts(t, columnar);
  t.is(withAlertTexts(page, section), page, 'run `npm run alert-texts`');
  for (const { title } of documentedRules) {
    const [, text = ''] = section.split(`### ${title}\n`);
    const [one = ''] = text.split('\n### ');
    for (const line of ['Where', 'Since', 'Cause', 'First', 'More']) {
      t.regex(one, new RegExp(`^ {4}${line}: .{10}`, 'm'), `${title} says ${line}`);
    }
  }
});
