import { statSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { alerts } from '../../../src/plugins/alerts/index.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { webhook } from '../../support/webhook.ts';
import { ApprovalRig, LongWaits, wipe } from './approval-rig.ts';
import { until } from './talkers.ts';

const BASE = 'https://gw.example';
const FORM = 'application/x-www-form-urlencoded';
const PLUGIN = new URL('../../../src/plugins/gateway/index.ts', import.meta.url).pathname;

/** A gateway with a public address, whose alerts go to a receiver that repeats what it gets. */
async function open(t: ExecutionContext, publicUrl = BASE) {
  const phone = await webhook(t);
  phone.behave((answer, { body }) => void answer.writeHead(200).end(JSON.parse(body).link ?? 'ok'));
  const clock = new LongWaits();
  const ladder = alerts({
    receivers: { phone: { url: phone.url, batchSeconds: 0 } },
    routes: [{ steps: [{ to: ['phone'] }] }],
    rules: [],
  });
  const options = publicUrl === '' ? {} : { publicUrl };
  const on = await ApprovalRig.open(t, { clock, options, others: [ladder] });
  /** The link of the newest alert of a request. */
  const linkOf = async (id: string | undefined): Promise<URL> => {
    const told = () => phone.json().flatMap((one) => [one, ...(one.alerts ?? [])]);
    const find = () => told().find(({ labels, link }) => labels.approval === id && link !== undefined);
    await until(t, 'the link is told', () => find() !== undefined);
    const link = new URL(find().link);
    t.is(link.origin, publicUrl);
    return link;
  };
  const show = (link: URL) => fetch(`${on.rig.url}${link.pathname}${link.search}`);
  const submit = (link: URL, body: string, headers: Record<string, string> = { origin: BASE }) =>
    fetch(`${on.rig.url}${link.pathname}${link.search}`, {
      method: 'POST',
      headers: { 'content-type': FORM, ...headers },
      body,
    });
  return { on, phone, clock, linkOf, show, submit };
}

test('[G6,O17] an alert brings a signed link: its page shows what is asked, its form alone decides, and once', async (t) => {
  const { on, phone, linkOf, show, submit } = await open(t);
  const client = await on.connect(t);
  const waiting = wipe(client, '<script>alert(1)</script>');
  const [asked] = await on.waiting(t);
  const link = await linkOf(asked?.id);
  t.regex(phone.json()[0].text, new RegExp(`Decide: ${BASE}/call-approvals/${asked?.id}\\?token=`));
  t.regex(phone.json()[0].text, /holdfast gateway approve/);

  const page = await show(link);
  t.is(page.status, 200);
  const policy = page.headers.get('content-security-policy') ?? '';
  t.regex(policy, /default-src 'none'.*form-action 'self'; frame-ancestors 'none'/);
  t.is(page.headers.get('referrer-policy'), 'same-origin');
  t.is(page.headers.get('cache-control'), 'no-store');
  const html = await page.text();
  t.regex(html, /<form method="post">/);
  t.regex(html, /&lt;script&gt;/);
  t.notRegex(html, /<script/);
  t.is((await on.list())[0]?.state, 'waiting', 'who opens it decides nothing');
  t.is((await fetch(`${on.rig.url}${link.pathname}${link.search}`, { method: 'HEAD' })).status, 405);

  const yes = 'verdict=approved&why=on+the+phone';
  t.is((await submit(link, yes, { origin: 'https://evil.example' })).status, 403, 'a page of another origin');
  t.is((await submit(link, yes, { 'sec-fetch-site': 'cross-site' })).status, 403);
  t.is((await submit(link, yes, { 'content-type': 'text/plain' })).status, 415);
  t.is((await submit(link, 'verdict=approved')).status, 400, 'without a reason');
  t.is((await submit(link, 'verdict=perhaps&why=x')).status, 400);
  t.is((await on.list())[0]?.state, 'waiting');
  t.is((await submit(link, yes)).status, 200);
  t.regex(await waiting, /^wiped/);
  const second = await submit(link, 'verdict=denied&why=oh+no');
  t.is(second.status, 409);
  t.regex(await second.text(), /does not wait any more: it was approved/);
  t.like((await on.list())[0]?.decision, { verdict: 'approved', by: 'signed link', why: 'on the phone' });

  const token = link.searchParams.get('token') ?? '';
  t.deepEqual(await on.rig.traces(token, token.split('.')[1] ?? ''), [], 'the link is recorded nowhere');
  await until(t, 'the end is told', () => phone.json().some(({ kind }) => kind === 'resolved'));
  t.false(phone.json().some(({ kind, link: given }) => kind === 'resolved' && given !== undefined));
  t.is(statSync(join(on.rig.dataDir, 'secrets', 'gateway-approval-key')).mode & 0o777, 0o600);
});

test('[G6] a link is good for its request alone, until its deadline, and not when anything of it is changed', async (t) => {
  const { on, clock, linkOf, show, submit } = await open(t);
  const client = await on.connect(t);
  const calls = [wipe(client, 'one'), wipe(client, 'two')];
  const [one, two] = await on.waiting(t, 2);
  const link = await linkOf(one?.id);
  const changed = (change: (url: URL) => void) => {
    const url = new URL(link);
    change(url);
    return url;
  };
  const token = link.searchParams.get('token') ?? '';
  const [end = '', mac = ''] = token.split('.');
  const wrong = [
    changed((url) => url.searchParams.delete('token')),
    changed((url) => url.searchParams.set('token', '')),
    changed((url) => url.searchParams.set('token', `${end}.${mac.slice(1)}${mac[0] === 'A' ? 'B' : 'A'}`)),
    changed((url) => url.searchParams.set('token', `${Number(end) + 60_000}.${mac}`)),
    changed((url) => url.searchParams.append('token', token)),
    changed((url) => {
      url.pathname = url.pathname.replace(one?.id ?? '', two?.id ?? '');
    }),
  ];
  for (const url of wrong) {
    const answers = [await show(url), await submit(url, 'verdict=approved&why=x')];
    for (const answer of answers) {
      t.is(answer.status, 403, url.search);
      t.notRegex(await answer.text(), /wipe|desk/, 'it shows nothing');
    }
  }
  t.is((await show(link)).status, 200);
  await clock.advance(15 * 60_000);
  t.is((await show(link)).status, 403);
  const late = await submit(link, 'verdict=approved&why=x');
  t.is(late.status, 403);
  t.regex(await late.text(), /its time is over/);
  for (const said of await Promise.all(calls)) t.regex(said, /Nobody approved/);
  t.deepEqual(on.server.wiped, []);
});

test('[G6] without a public address there is no link; the commands list what waits, and decide with a reason', async (t) => {
  const { on, phone } = await open(t, '');
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [gateway()] });', [
    `import { gateway } from ${JSON.stringify(PLUGIN)};`,
  ]);
  const run = (...argv: string[]) => call(['gateway', ...argv, '--data-dir', on.rig.dataDir], { cwd });
  t.is((await run('approvals')).out, 'no call waits for a person\n');
  const client = await on.connect(t);
  const waiting = wipe(client, 'home');
  const [asked] = await on.waiting(t);
  const id = asked?.id ?? '';
  await until(t, 'it is told', () => phone.received.length > 0);
  t.is(phone.json()[0].link, undefined);
  t.notRegex(phone.json()[0].text, /Decide:/);

  const listed = await run('approvals');
  t.regex(listed.out, new RegExp(`^${id} desk: pages wipe\n {2}waits until [^\n]+, 1 connected\n`));
  t.regex(listed.out, /\| {3}"page": "home"/);
  t.like(JSON.parse((await run('approvals', '--json')).out), { approvals: [{ id, state: 'waiting' }] });
  const bare = await run('approve', id);
  t.is(bare.code, 2);
  t.regex(bare.err, /--why/);
  const unknown = await run('deny', 'nosuch', '--why', 'x');
  t.is(unknown.code, 1);
  t.regex(unknown.err, /No request for approval is known as nosuch/);
  const done = await run('approve', id, '--why', 'asked for');
  t.deepEqual([done.code, done.out], [0, `approved: ${id} desk: pages wipe\n`]);
  t.is(await waiting, 'wiped home');
  const again = await run('deny', id, '--why', 'too late');
  t.is(again.code, 1);
  t.regex(again.err, /does not wait any more: it was approved, and the call was made/);
  t.regex((await run('approvals')).out, /it was approved, and the call was made \(by .*\n {2}why: asked for/);
});
