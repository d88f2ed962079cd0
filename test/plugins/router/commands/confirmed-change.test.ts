import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import {
  type ChangeEnd,
  changeSafely,
  type Verdict,
} from '../../../../src/plugins/router/commands/change/confirmed-change.ts';
import { RouterClient } from '../../../../src/plugins/router/commands/client.ts';

/** How a daemon in the field answers one request: status and body, or it hangs up. */
type Answer = readonly [status: number, body: unknown] | 'hangs up';

/** A daemon that answers each operation from its script, the last answer again and again. */
async function daemon(t: ExecutionContext, script: Record<string, readonly Answer[]>) {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await Array.fromAsync(request)).toString());
    const op = String(body.transactionOp);
    asked.push(op);
    if (op === 'append') t.false(['ignoreNcid', 'reqId'].some((field) => field in body));
    const answers = script[op] ?? [];
    const answer = answers[Math.min(asked.filter((one) => one === op).length, answers.length) - 1];
    if (answer === undefined || answer === 'hangs up') return request.socket.destroy();
    response.writeHead(answer[0], { 'content-type': 'application/json' }).end(JSON.stringify(answer[1]));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const client = new RouterClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, undefined);
  return { client, asked };
}

const OK: Answer = [200, { errors: [], ncid: 'n2' }];
const NO: Answer = [
  400,
  { errors: ['No ongoing config change transaction context, cannot commit or revert'] },
];
const keep = { keep: true } as const;
const drop = { keep: false, reason: 'a check failed' } as const;

const cases: [
  promise: string,
  script: Record<string, readonly Answer[]>,
  verdict: Verdict,
  end: ChangeEnd['outcome'],
  asked: readonly string[],
][] = [
  ['a kept change is committed', { append: [OK], commit: [OK] }, keep, 'committed', ['append', 'commit']],
  ['a dropped one is reverted', { append: [OK], revert: [OK] }, drop, 'reverted', ['append', 'revert']],
  [
    'a refusal that applied all the same is reverted',
    { append: [[400, { errors: ['Unknown'] }]], revert: [OK] },
    keep,
    'reverted',
    ['append', 'revert'],
  ],
  [
    'a refusal that applied nothing is one',
    { append: [[400, { errors: ['ncid not match'] }]], revert: [NO] },
    keep,
    'refused',
    ['append', 'revert'],
  ],
  [
    'a coded refusal is believed',
    { append: [[400, { errors: ['ncid not match'], code: 'HF_ROUTER_NCID_MISMATCH' }]] },
    keep,
    'refused',
    ['append'],
  ],
  [
    'an append that was not answered is reverted',
    { append: ['hangs up'], revert: [OK] },
    keep,
    'reverted',
    ['append', 'revert'],
  ],
  [
    'a gateway time-out is no refusal',
    { append: [[504, 'late']], revert: ['hangs up', OK] },
    keep,
    'reverted',
    ['append', 'revert', 'revert'],
  ],
  [
    'a commit that got through and was not answered is one',
    { append: [OK], commit: ['hangs up', [400, { errors: ['used'], code: 'HF_ROUTER_TRANSACTION_USED' }]] },
    keep,
    'committed',
    ['append', 'commit', 'commit'],
  ],
  [
    'a commit that may have got through is unknown',
    { append: [OK], commit: ['hangs up', NO] },
    keep,
    'unknown',
    ['append', 'commit', 'commit'],
  ],
  [
    'a commit that came too late says reverted',
    { append: [OK], commit: [NO] },
    keep,
    'reverted',
    ['append', 'commit'],
  ],
  [
    'a revert that came too late says reverted',
    { append: [OK], revert: [NO] },
    drop,
    'reverted',
    ['append', 'revert'],
  ],
];
for (const [promise, script, verdict, outcome, asked] of cases) {
  test(`[R31] beside a daemon as they are in the field: ${promise}`, async (t) => {
    const router = await daemon(t, script);
    const decide = async () => verdict;
    const end = await changeSafely({
      client: router.client,
      config: { ncid: 'n1', reqId: 'x' },
      transID: 't',
      decide,
    });
    t.is(end.outcome, outcome, JSON.stringify(end));
    t.deepEqual(router.asked, asked);
  });
}

test('[R31] when the command itself fails while it decides, the change is reverted', async (t) => {
  const { client, asked } = await daemon(t, { append: [OK], revert: [OK] });
  const decide = () => Promise.reject(new Error('no more memory'));
  await t.throwsAsync(changeSafely({ client, config: {}, transID: 't', decide }), {
    message: 'no more memory',
  });
  t.deepEqual(asked, ['append', 'revert']);
});

test('[R31] a router that does not answer any more leaves the outcome unknown', async (t) => {
  const { client } = await daemon(t, { append: [OK], commit: ['hangs up'] });
  t.is(
    (await changeSafely({ client, config: {}, transID: 't', decide: async () => keep })).outcome,
    'unknown',
  );
});
