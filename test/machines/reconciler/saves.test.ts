import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import { type SavesEvent, saves } from '../../../src/machines/reconciler/saves.ts';

const dropped = (alerted: readonly string[], count: number): SavesEvent => ({
  type: 'DROPPED',
  at: 1_000,
  ncid: 'n2',
  paths: alerted,
  count,
  alerted,
});

test('[R26] an alert names the dropped paths, and how many there are where it does not name them all', (t) => {
  const textOf = (paths: string) => ({
    type: 'alerts.raise',
    params: {
      name: 'reconciler.paths_dropped',
      severity: 'warning',
      text: `A save of the router's config dropped ${paths}; see \`holdfast router dropped\`.`,
      labels: { ncid: 'n2' },
    },
  });
  given(saves, {})
    .when(dropped(['a.b', 'a.c'], 2))
    .then({ state: 'watching', effects: [textOf('a.b, a.c')] })
    .when(dropped(['a.b'], 2))
    .then({ state: 'watching', effects: [textOf('a.b (2 paths in all)')] })
    .when(dropped([], 2))
    .then({ state: 'watching', effects: [] });
  t.pass();
});
