import test from 'ava';
import { ApprovalRig, wipe } from './approval-rig.ts';
import { until } from './talkers.ts';

test('[G6,G23] a call waits until a person approves it, its client hears so meanwhile, and it goes through once', async (t) => {
  const on = await ApprovalRig.open(t);
  const client = await on.connect(t);
  const heard: { message?: string | undefined; progress: number }[] = [];
  const call = wipe(client, 'home', { onprogress: (progress) => void heard.push(progress) });
  const [asked] = await on.waiting(t);
  t.like(asked, {
    alias: 'desk',
    route: 'pages',
    tool: 'wipe',
    arguments: '{\n  "page": "home"\n}',
    callers: 1,
  });
  await until(t, 'the client hears of it', () => heard.length === 1);
  t.regex(heard[0]?.message ?? '', new RegExp(`approve it \\(${asked?.id}\\), for 900 s`));
  t.is(heard[0]?.progress, -900, 'progress of the upstream is greater');
  t.deepEqual(on.server.wiped, [], 'its server has not heard of it');
  const { content } = await client.callTool({ name: 'pages-read', arguments: {} });
  t.like(content, [{ text: 'read' }], 'a tool that needs nobody is called meanwhile');

  t.like(await on.decide(asked?.id ?? '', 'approved'), { status: 200, body: { state: 'approved' } });
  t.is(await call, 'wiped home');
  t.deepEqual(on.server.wiped, ['home']);
  const again = await on.decide(asked?.id ?? '', 'denied');
  t.like(again, { status: 409, body: { code: 'HF_GATEWAY_APPROVAL_DECIDED' } });
  t.regex((again.body as any).what, /it was approved, and the call was made \(by ann/);
  t.like(await on.decide('nosuch', 'approved'), {
    status: 404,
    body: { code: 'HF_GATEWAY_APPROVAL_UNKNOWN' },
  });
  const second = wipe(client);
  const [another] = await on.waiting(t);
  t.not(another?.id, asked?.id, 'an approval is good for one call: the same one asks anew');
  await on.decide(another?.id ?? '', 'denied', 'enough');
  t.regex(await second, /^refused: Error: The call was denied by ann: enough/);

  const records = (await on.rig.records()).filter(({ actor }) => actor.startsWith('gateway.approval/'));
  t.deepEqual(
    records.map(({ event }) => event.type).filter((type) => !/^init|^effect|^xstate/.test(type)),
    ['ASKED', 'DECIDED', 'CLAIMED', 'DECIDED', 'ASKED', 'DECIDED'],
  );
  t.like(records.find(({ event }) => event.type === 'DECIDED')?.event, { by: 'ann', why: 'said so' });
});
