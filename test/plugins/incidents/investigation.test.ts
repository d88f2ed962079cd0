import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { router } from '../../../src/plugins/router/index.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { type Investigation, investigate } from './rig.ts';

const MINUTE_MS = 60_000;
const EVENING = Date.parse('2026-03-14T20:00:00Z');
const OFFICE = 'eth1.20';
const LAB = 'eth1.40';
const RESTING = new Set(['whole', 'refusedByName']);

/**
 * An evening and a night. At 21:00 the app renames Lab to Workshop. At 22:30 somebody names Office `Guest` in the app, whose save
 * drops the static address, as every save of it does; the reconciler never touches a network of that name.
 */
async function night(t: ExecutionContext): Promise<Investigation> {
  const clock = new VirtualClock(EVENING);
  const legs = [
    { intf: OFFICE, label: 'Office', address: 'fd5e:21aa:90c4:20::1/64' },
    { intf: LAB, label: 'Lab', address: 'fd5e:21aa:90c4:40::1/64' },
  ];
  const others = [router({ port: 0 }), reconciler({ legs, resyncMs: 20 * MINUTE_MS })];
  const investigation = await investigate(t, { clock, others });
  const { runtime } = investigation.rig;
  const state = (intf: string) => String(runtime.services.actors.snapshot(`reconciler.leg/${intf}`)?.value);
  const rest = async (wanted: (office: string) => boolean = () => true) => {
    const end = performance.now() + PATIENCE_MS;
    const isAtRest = () => [OFFICE, LAB].every((intf) => RESTING.has(state(intf))) && wanted(state(OFFICE));
    while (!isAtRest()) {
      if (performance.now() > end) throw new Error(`Office is ${state(OFFICE)}, Lab is ${state(LAB)}`);
      await clock.advance(25);
      await delay(2); // real reads and writes have to end, too
    }
  };
  const until = async (time: string) => {
    const end = Date.parse(`2026-03-${time}:00Z`);
    while (clock.now() < end) {
      await clock.advance(Math.min(5 * MINUTE_MS, end - clock.now()));
      await rest();
    }
  };
  const { url } = runtime.surfaces.router ?? { url: '' };
  const save = async (change: (vlans: any) => void) => {
    const config: any = await (await fetch(`${url}/v1/config/active`)).json();
    change(config.interface.vlan);
    const answer = await fetch(`${url}/v1/config/set`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'PhoneApp/1.64' },
      body: JSON.stringify(config),
    });
    t.is(answer.status, 200, await answer.text());
  };
  await rest((office) => office === 'whole');
  await until('14T21:00');
  await save((vlans) => {
    vlans[LAB].meta.name = 'Workshop';
  });
  await until('14T22:30');
  await save((vlans) => {
    vlans[OFFICE].meta.name = 'Guest';
    delete vlans[OFFICE].ipv6;
  });
  await rest((office) => office === 'refusedByName');
  await until('15T02:00');
  await investigation.rig.records();
  return investigation;
}

test('[C7,C8] an agent with the incidents route alone finds why the office lost IPv6 last night', async (t) => {
  const { ask, client } = await night(t);
  const { messages } = await client.getPrompt({
    name: 'investigate',
    arguments: { question: 'why did the office lose IPv6 last night?' },
  });
  t.regex(JSON.stringify(messages), /1\. overview.*why did|why did the office.*1\. overview/s);

  // Whatever is wrong names the leg, and the record to go on with.
  const { fields: now } = await ask('overview', { at: 'now' });
  const alert = now.raised.find(({ text }: any) => /office/i.test(text));
  t.like(alert, { alert: 'reconciler.leg.refused_by_name', severity: 'critical' });
  t.regex(alert.text, /Office \(eth1\.20\) is named Guest in the router's config/);
  const { fields: before } = await ask('overview', { at: '2026-03-14T22:00Z' });
  t.deepEqual(before.raised, [], 'nothing was wrong half an hour before');

  // What differs between a time when it worked and now: the leg, and the config that it depends on.
  const { fields: changed } = await ask('what_changed', { from: '2026-03-14T22:00Z' });
  const office = changed.actors.find(({ actor }: any) => actor === `reconciler.leg/${OFFICE}`);
  t.like(office, { from: 'whole', to: 'refusedByName' });
  t.is(office.context.refusedName, 'Guest');

  // Who touched it: two saves name an interface, and one of them is of the office.
  const { fields: found } = await ask('search_stories', { from: '6h ago', text: OFFICE, event: 'SET' });
  t.is(found.stories.length, 1);
  const [save] = found.stories[0].lines;
  t.regex(save.what, /PhoneApp\/1\.64 saves: .*interface\.vlan\.eth1\.20\.ipv6/);
  t.is(save.at.slice(0, 16), '2026-03-14T22:30');

  // The chain from the alert goes back to just that record.
  const explained = await ask('explain_record', { record: alert.record });
  t.true(explained.fields.complete);
  t.is(explained.fields.steps[0].record, save.record);
  t.is(explained.fields.steps.at(-1).record, alert.record);
  t.regex(explained.fields.steps[0].text, /got SET from outside.*PhoneApp/);
  t.regex(explained.text, /is refused: its network is named Guest/);

  // Without that save nothing of it would have come; without the other one all of it would.
  const { fields: without } = await ask('what_if', { drop: [save.record] });
  t.true(without.differing > 0);
  const ofOffice = ({ actor }: any) => actor === `reconciler.leg/${OFFICE}`;
  t.true(without.mightDiffer.some(ofOffice));
  const { fields: others } = await ask('search_stories', { event: 'SET', to: '2026-03-14T22:00Z' });
  const rename = others.stories
    .flatMap(({ lines }: any) => lines)
    .find(({ what }: any) => /eth1\.40/.test(what));
  const { fields: innocent } = await ask('what_if', { drop: [rename.record], until: '2026-03-14T22:00Z' });
  t.true(innocent.differing > 0);
  t.false(innocent.mightDiffer.some(ofOffice), JSON.stringify(innocent.mightDiffer));

  t.like((await ask('verify_log')).fields, { ok: true });
});
