import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import { observedConfig } from '../../../src/machines/router/observed-config.ts';

const T = 1_800_000_000_000;
/** An ncid as a router makes it, so many seconds after the first. */
const ncid = (seconds: number) => `${'a'.repeat(19)}${T + seconds * 1000}`;
const seen = (id: string, fingerprint: string, more: { request?: string; heldMs?: number } = {}) => ({
  type: 'SEEN' as const,
  ncid: id,
  fingerprint,
  heldMs: 0,
  ...more,
});
const written = (id: string, more: { posted?: string; ignoreNcid?: true }) => ({
  type: 'WRITTEN' as const,
  ncid: id,
  ...more,
});
const raises = (name: string, labels: object, text: RegExp | string) =>
  ({ type: 'alerts.raise', params: { name, severity: 'warning', labels, text } }) as never;

const TEXT = 'The router config was changed in its store and not through the API';
const changed = (expected: string, found: string, why: string) =>
  raises('router.store_changed', { expected, found, why }, `${TEXT}: ${why}.`);
const skipped = (how: string, posted: string, current: string) =>
  raises(
    'router.ncid_bypassed',
    { who: 'unknown', posted, current },
    `A client wrote the router config ${how}, so what was saved in between may be overwritten.`,
  );

test('[R36] saves, each with a new ncid, raise nothing', (t) => {
  given(observedConfig)
    .when(seen(ncid(0), 'fp_1'))
    .then({ state: 'seen', effects: [] })
    .when(seen(ncid(1), 'fp_2', { heldMs: 900_000 }))
    .then({ state: 'seen', effects: [], context: { previous: ncid(0) } })
    .when(seen(ncid(1), 'fp_2', { heldMs: 900_000 }))
    .then({ state: 'seen', ignored: true })
    .when(seen(ncid(2), 'fp_1'))
    .then({ state: 'seen', effects: [], context: { previous: ncid(1) } });
  t.pass();
});

test('[R36] another content under the same ncid was written by hand', (t) => {
  const why = 'its content changed and its ncid did not';
  given(observedConfig, { events: [seen(ncid(0), 'fp_1')] })
    .when(seen(ncid(0), 'fp_2'))
    .then({ state: 'seen', effects: [changed(ncid(0), ncid(0), why)] })
    .when(seen(ncid(0), 'fp_2'))
    .then({ state: 'seen', ignored: true })
    .when(seen(ncid(1), 'fp_3'))
    .then({ state: 'seen', effects: [] })
    .when(seen(ncid(0), 'fp_4'))
    .then({ state: 'seen', effects: [changed(ncid(1), ncid(0), why)] });
  t.pass();
});

test('[R36] an ncid that no router makes was written by hand, unless this router makes such', (t) => {
  given(observedConfig, { events: [seen(ncid(0), 'fp_1')] })
    .when(seen('mine', 'fp_2'))
    .then({ state: 'seen', effects: [changed(ncid(0), 'mine', 'its ncid is none that a router makes')] });
  given(observedConfig, { events: [seen('n1', 'fp_1')] })
    .when(seen('n2', 'fp_2'))
    .then({ state: 'seen', effects: [] });
  t.pass();
});

test('[R36] an earlier ncid comes back by the revert of a transaction, and otherwise by hand', (t) => {
  const events = [seen(ncid(0), 'fp_1'), seen(ncid(10), 'fp_2')];
  const why = 'an earlier ncid is in force again, and no transaction was pending';
  given(observedConfig, { events })
    .when(seen(ncid(0), 'fp_1', { heldMs: 130_000 }))
    .then({ state: 'seen', effects: [] });
  given(observedConfig, { events })
    .when(seen(ncid(5), 'fp_9', { heldMs: 130_000 }))
    .then({ state: 'seen', effects: [] });
  given(observedConfig, { events })
    .when(seen(ncid(0), 'fp_1', { heldMs: 150_001 }))
    .then({ state: 'seen', effects: [changed(ncid(10), ncid(0), why)] });
  given(observedConfig, { events })
    .when(seen(ncid(-5), 'fp_0', { heldMs: 10_000 }))
    .then({ state: 'seen', effects: [changed(ncid(10), ncid(-5), why)] });
  t.pass();
});

test('[R4] a new config with the reqId of the one before was not checked', (t) => {
  const events = [seen(ncid(0), 'fp_1', { request: 'fp_r' })];
  given(observedConfig, { events })
    .when(seen(ncid(1), 'fp_2', { request: 'fp_r' }))
    .then({
      state: 'seen',
      effects: [skipped('with the reqId of the config before it', 'unknown', ncid(0))],
    });
  given(observedConfig, { events })
    .when(seen(ncid(1), 'fp_1', { request: 'fp_r' }))
    .then({ state: 'seen', effects: [] })
    .when(seen(ncid(2), 'fp_2', { request: 'fp_s' }))
    .then({ state: 'seen', effects: [] });
  t.pass();
});

test('[R4] a write whose history bears an ncid older than the one in force skipped the check', (t) => {
  const events = [seen(ncid(0), 'fp_0'), seen(ncid(10), 'fp_1'), seen(ncid(20), 'fp_2')];
  const how = 'without the ncid that was in force';
  const when = (more: { posted?: string; ignoreNcid?: true }, id = ncid(20)) =>
    given(observedConfig, { events }).when(written(id, more));
  when({ posted: ncid(0) }).then({ state: 'seen', effects: [skipped(how, ncid(0), ncid(10))] });
  when({}).then({ state: 'seen', effects: [skipped(how, 'none', ncid(10))] });
  when({ posted: ncid(10), ignoreNcid: true }).then({
    state: 'seen',
    effects: [skipped('with ignoreNcid', ncid(10), ncid(10))],
  });
  when({ posted: ncid(10) }).then({ state: 'seen', ignored: true });
  when({ posted: ncid(20) }).then({ state: 'seen', ignored: true });
  when({ posted: ncid(15) }).then({ state: 'seen', ignored: true });
  when({ posted: ncid(0) }, ncid(10)).then({ state: 'seen', ignored: true });
  t.pass();
});
