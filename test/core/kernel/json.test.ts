import test from 'ava';
import fc from 'fast-check';
import { applyMergePatch, diffContext, type Json, jsonEqual } from '../../../src/core/kernel/json.ts';

/** What every object has without holding it. */
const INHERITED = Object.getOwnPropertyNames(Object.prototype).filter((name) => name !== '__proto__');

test('[C4] a key that is named like what every object has is a key like any other', (t) => {
  for (const name of INHERITED) {
    t.false(jsonEqual({}, { [name]: { vid: 7 } }), name);
    t.false(jsonEqual({ [name]: 1 }, {}), name);
    t.true(jsonEqual({ [name]: 1 }, { [name]: 1 }), name);
    t.deepEqual(diffContext({ legs: {} }, { legs: { [name]: 1 } }), { legs: { [name]: 1 } }, name);
    t.deepEqual(diffContext({ legs: { [name]: 1 } }, { legs: {} }), { legs: { [name]: null } }, name);
  }
});

test('[C4] a merge patch leads from any context to any other, whatever their keys are named', (t) => {
  const key = fc.oneof(fc.constantFrom(...INHERITED, 'a', 'b'), fc.string({ maxLength: 3 }));
  const named = key.filter((name) => name !== '__proto__');
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 2 }));
  const inner = fc.dictionary(named, leaf, { maxKeys: 4 });
  const context = fc.dictionary(named, fc.oneof(leaf, inner), { maxKeys: 4 });
  fc.assert(
    fc.property(context, context, (from, to) => {
      const patch = diffContext(from, to);
      const led = patch === undefined ? (from as Json) : applyMergePatch(from as Json, patch);
      t.true(jsonEqual(led, to));
      t.deepEqual(Object.keys(led as object).sort(), Object.keys(to).sort());
    }),
    { numRuns: 300 },
  );
});
