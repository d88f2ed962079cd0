import test from 'ava';
import fc from 'fast-check';
import { NamedSlab, Slab } from '../../../src/core/kernel/slab.ts';

test('[G23] a slab holds what was added and not removed, and who leaves twice puts nobody else out', (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(20))), (steps) => {
      const slab = new Slab<{ id: number }>();
      const added: { item: { id: number }; place: number }[] = [];
      const there = new Set<object>();
      for (const [adds, at] of steps) {
        const one = added[at % Math.max(1, added.length)];
        if (adds || !one) {
          const item = { id: added.length };
          added.push({ item, place: slab.add(item) });
          there.add(item);
        } else {
          slab.remove(one.place, one.item); // perhaps for the second time
          there.delete(one.item);
        }
        if (slab.size !== there.size || ![...slab].every((item) => there.has(item))) return false;
      }
      return added.every(({ item, place }) => (slab.at(place) === item) === there.has(item));
    }),
  );
  t.pass();
});

test('[G23] by name a slab does what a Map does', (t) => {
  const names = fc.constantFrom('a', 'b', 'c', '__proto__');
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('set', 'take', 'get'), names)), (steps) => {
      const slab = new NamedSlab<{ id: number }>();
      const model = new Map<string, { id: number }>();
      return steps.every(([what, name], id) => {
        if (what === 'set') {
          slab.set(name, { id });
          model.set(name, { id });
        }
        const got = what === 'take' ? slab.take(name) : slab.get(name);
        const wanted = model.get(name);
        if (what === 'take') model.delete(name);
        return (
          got?.id === wanted?.id &&
          slab.size === model.size &&
          slab.has(name) === model.has(name) &&
          [...slab.names()].toSorted().join() === [...model.keys()].toSorted().join()
        );
      });
    }),
  );
  t.pass();
});
