import test from 'ava';
import { freeOf, textOf } from '../../../../src/core/host/history/answer-text.ts';

test('[C15] half of a character, which no address can hold, is in no answer: also not where a text is cut', (t) => {
  const link = (name: string) => encodeURIComponent(name);
  t.throws(
    () => link('lamp/\ud800'),
    { instanceOf: URIError },
    'a page that makes a link of it would be empty',
  );
  t.is(link(textOf('lamp/\ud800x')), link('lamp/\ufffdx'));
  t.notThrows(() => link(textOf('💡'.repeat(400), 100)));
  t.notThrows(() => link(JSON.parse(JSON.stringify(textOf('💡'.repeat(400), 101)))));
  t.deepEqual(freeOf({ 'a\udc00': ['b\ud800'] }), { 'a\ufffd': ['b\ufffd'] });
});
