import test from 'ava';
import type { Json } from '../../../../src/core/kernel/json.ts';
import { announceHeld } from '../../../../src/plugins/cluster/operate/held-since.ts';

test('[C13] since when work is held is what the holder itself says, and nothing where none says it', (t) => {
  let announced: (() => Json) | undefined;
  const beats = {
    announce: (_name: string, figures: () => Json) => {
      announced = figures;
    },
    announced: (): ReadonlyMap<string, Json> =>
      new Map<string, Json>([
        ['two', { jobs: 7, alerts: 8 }],
        ['three', 'x'],
      ]),
  };
  const singletons = [
    { key: 'reconciler', context: { holder: 'one', since: 5 } },
    { key: 'jobs', context: { holder: 'two', since: 3 } },
  ];
  const heldSince = announceHeld(beats, () => singletons, 'one');
  t.deepEqual(announced?.(), { reconciler: 5 }, 'only its own');
  t.is(heldSince('reconciler', 'one'), 5);
  t.is(heldSince('jobs', 'two'), 7);
  t.is(heldSince('toString', 'two'), undefined);
  t.is(heldSince('jobs', 'three'), undefined);
  t.is(heldSince('jobs', 'four'), undefined);
});
