import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { operatorName } from '../../../../src/core/host/operations/control-client.ts';
import { definePlugin } from '../../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../../src/core/host/runtime/runtime.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import type { Json } from '../../../../src/core/kernel/json.ts';
import { ClusterError } from '../../../../src/plugins/cluster/errors.ts';
import { contributePage } from '../../../../src/plugins/cluster/operate/console-page.ts';
import { registerHealth } from '../../../../src/plugins/cluster/operate/health.ts';
import {
  answerOperations,
  type OperatedCluster,
  registerOperations,
} from '../../../../src/plugins/cluster/operate/operations.ts';
import { standaloneCommands as commands } from '../../../../src/plugins/cluster/standalone.ts';
import { call } from '../../../support/cli.ts';
import { tempDir } from '../../../support/temp.ts';

/** What all hosts of a test know: who holds what. */
class Shared {
  readonly holders = new Map<string, string>([['reconciler', 'one']]);
  readonly hosts = new Map<string, TestHost>();
  tokens = 1;
}

/** A host whose leases move as soon as they are released. */
class TestHost implements OperatedCluster {
  readonly name = 'home';
  readonly version = '0.2.0';
  readonly clock = systemClock;
  readonly link = { isUp: true, problem: undefined, shown: 'nats://a', serverVersion: '2.9.10', forged: 0 };
  readonly outbox: OperatedCluster['outbox'];
  readonly host: string;
  readonly reasons: string[] = [];
  readonly #shared: Shared;
  readonly #answers = new Map<string, (body: Json) => unknown>();
  readonly forgotten = new Set<string>();
  isDrained = false;
  isAlive = true;
  isUnread = false;
  takesNothing = false;
  exports: number[] = [];

  constructor(host: string, shared: Shared) {
    this.host = host;
    this.#shared = shared;
    shared.hosts.set(host, this);
    this.outbox = {
      ...{ position: { incarnation: 1, seq: 1 }, trouble: undefined, orphans: () => [] },
      lag: () => ({ records: 0, bytes: 0, ms: 0 }),
    };
    answerOperations(this);
  }

  readonly outdated = [];
  readonly leftBecause = undefined;
  heldSince: (singleton: string, holder: string) => number | undefined = () => 1_000;
  hasStopped: (host: string) => boolean = () => false;
  forgottenBy: unknown;
  readonly recorded: unknown[] = [];
  readonly record = {
    singleton: (name: string, { at: _, ...event }: { at: number }) =>
      void this.recorded.push({ name, ...event }),
    host: (name: string, { at: _, ...event }: { at: number }) => void this.recorded.push({ name, ...event }),
  };
  silentMs = 0;

  standing() {
    return { hosts: 2, silentMs: this.silentMs, isIsolated: this.silentMs > 2_000, isBehind: false };
  }

  get beats() {
    const others = [...this.#shared.hosts.values()].filter(
      (other) => other !== this && !this.forgotten.has(other.host),
    );
    const heard = new Map(
      others.map(({ host, version, isAlive }) => [
        host,
        { run: host, version, heardMs: systemClock.monotonic() - (isAlive ? 0 : 60_000), lag: 0 },
      ]),
    );
    return { heard, trouble: undefined };
  }

  readonly shared = { trouble: undefined };

  get leases(): OperatedCluster['leases'] {
    const { holders, hosts } = this.#shared;
    return {
      table: () =>
        [...holders].map(([singleton, host]) => ({
          singleton,
          holder: { host, token: `x:${this.#shared.tokens}` },
          ...(host === this.host && { leftMs: 9_000 }),
        })),
      hosts: () => new Map([...hosts].map(([host, { isDrained }]) => [host, { drained: isDrained }])),
      isDrained: this.isDrained,
      refusal: undefined,
      trouble: undefined,
      obstacle: undefined,
      isUnread: this.isUnread,
      release: async (singleton, reason, to) => {
        this.reasons.push(reason);
        const other = [...hosts.values()].find(
          ({ host, isAlive, isDrained, takesNothing }) =>
            host !== this.host && isAlive && !isDrained && !takesNothing,
        );
        const named = to !== undefined && hosts.get(to)?.takesNothing ? undefined : to;
        holders.set(singleton, named ?? other?.host ?? this.host);
        this.#shared.tokens += 1;
      },
      drain: async (reason = '') => {
        this.isDrained = true;
        for (const [singleton, host] of holders)
          if (host === this.host) await this.leases.release(singleton, reason);
      },
      undrain: () => {
        this.isDrained = false;
      },
    };
  }

  async ask(question: string, body: Json) {
    const others = [...this.#shared.hosts.values()].filter(
      (other) => other !== this && !this.forgotten.has(other.host),
    );
    const answers = others
      .filter((other) => other.isAlive)
      .map((other) => ({ host: other.host, answer: other.answer(question, body) }))
      .filter(({ answer }) => answer !== undefined) as { host: string; answer: Json }[];
    return { answers, unanswered: others.filter((other) => !other.isAlive).map(({ host }) => host) };
  }

  answer(question: string, body: Json): unknown {
    return this.#answers.get(question)?.(body);
  }

  onAsked(question: string, answer: (body: Json, from: string) => unknown): void {
    this.#answers.set(question, (body) => answer(body, 'another'));
  }

  forget(host: string, act: unknown): void {
    this.forgotten.add(host);
    this.forgottenBy = act;
  }

  async exported(number: number): Promise<void> {
    if (number !== 1) throw new ClusterError('HF_CLUSTER_BRANCH', { number });
    this.exports.push(number);
  }
}

/** An instance of the host `one`, and the commands of its operator. */
async function operate(t: ExecutionContext, shared = new Shared()) {
  const one = new TestHost('one', shared);
  const two = new TestHost('two', shared);
  const dataDir = tempDir(t);
  const plugin = definePlugin({
    name: 'cluster',
    options: z.strictObject({}),
    errors: ClusterError,
    start: () => one,
    register(context) {
      registerOperations(context, (host) => host);
      registerHealth(context, (host) => host);
      contributePage(context, (host) => host);
    },
  });
  const { plugins } = resolveConfig({ plugins: [plugin()] }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const cwd = tempDir(t);
  const run = (...argv: string[]) =>
    call(['cluster', ...argv, '--data-dir', dataDir], { cwd, standaloneCommands: async () => commands });
  return { one, two, shared, run };
}

test('[C13] cluster status, hosts and leases show the cluster; --json gives the same as data', async (t) => {
  const { run, shared } = await operate(t);
  const status = await run('status');
  t.is(status.code, 0, status.err);
  t.regex(status.out, /^one, a host of home; NATS: nats:\/\/a \(version 2\.9\.10\)$/m);
  const hosts = JSON.parse((await run('hosts', '--json')).out) as { hosts: { host: string }[] };
  t.deepEqual(
    hosts.hosts.map(({ host }) => host),
    ['one', 'two'],
  );
  t.regex((await run('leases')).out, /^reconciler +one +1970-01-01 00:00:01 UTC +x:1 +-$/m);
  shared.holders.delete('reconciler');
  t.regex((await run('leases')).out, /nothing runs on one host alone/);
});

test('[C13] cluster move gives work to another host, also from one that holds it elsewhere, and says who asked', async (t) => {
  const { run, one, two, shared } = await operate(t);
  const moved = await run('move', 'reconciler', '--to', 'two');
  t.is(moved.code, 0, moved.err);
  t.regex(moved.out, /^reconciler +two/m);
  t.regex(one.reasons.join(), /^\S+ moved it$/);
  t.is((await run('move', 'reconciler', '--to', 'one')).code, 0);
  t.is(shared.holders.get('reconciler'), 'one');
  t.is(two.reasons.length, 1, 'the host that held it released it');
});

test('[C13] cluster move refuses work and hosts that it does not know, drained ones, and a holder that is away', async (t) => {
  const { run, two, shared } = await operate(t);
  t.regex(
    (await run('move', 'jobs')).err,
    /HF_CLUSTER_SINGLETON\n {2}No host competes for jobs; known are: reconciler\./,
  );
  t.regex((await run('move', 'reconciler', '--to', 'six')).err, /six cannot take it over; able to are: two/);
  two.isDrained = true;
  const drained = await run('move', 'reconciler', '--to', 'two');
  t.regex(drained.err, /HF_CLUSTER_HOST\n.*able to are: none/);
  t.is(drained.code, 1);
  two.isDrained = false;
  two.isAlive = false;
  shared.holders.set('reconciler', 'two');
  t.regex((await run('move', 'reconciler')).err, /HF_CLUSTER_MOVE\n.*two does not answer/);
});

test('[C13] cluster move to the host that holds it moves nothing, and says so', async (t) => {
  const { run, one } = await operate(t);
  const { code, out, err } = await run('move', 'reconciler', '--to', 'one');
  t.is(code, 0, err);
  t.regex(out, /^one has it already\n.*\nreconciler +one/);
  t.deepEqual(one.recorded, []);
  const json = JSON.parse((await run('move', 'reconciler', '--to', 'one', '--json')).out);
  t.is(json.hadIt, 'one');
});

test('[C13] cluster commands say of an instance that is no host that it is alone, and how it becomes one', async (t) => {
  const dataDir = tempDir(t);
  const runtime = createRuntime({ plugins: [], dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { code, err } = await call(['cluster', 'status', '--data-dir', dataDir], {
    cwd: tempDir(t),
    standaloneCommands: async () => commands,
  });
  t.is(code, 1);
  t.regex(err, /HF_CLUSTER_ALONE\n.*is alone: it is no host of a cluster\./);
  t.regex(err, /set HOLDFAST_NATS_URL .* at its start/);
  t.notRegex(err, /npm run up/);
});

test('[C13] cluster drain gives everything away until it is undone', async (t) => {
  const { run, shared, one } = await operate(t);
  const drained = await run('drain');
  t.is(drained.code, 0, drained.err);
  t.regex(drained.out, /^one, drained, a host of home/m);
  t.is(shared.holders.get('reconciler'), 'two');
  t.regex((await run('drain', '--undo')).out, /^one, a host of home/m);
  t.false(one.isDrained);
});

test('[C13] cluster forget takes a lost host out of all lists, and refuses one that lives or holds something', async (t) => {
  const { run, one, two, shared } = await operate(t);
  const three = new TestHost('three', shared);
  t.regex((await run('forget', 'nobody')).err, /HF_CLUSTER_HOST_UNKNOWN\n.*known are: /);
  t.false(one.forgotten.has('nobody'));
  t.regex((await run('forget', 'three')).err, /HF_CLUSTER_HOST_LIVES\n.*its beats are heard/);
  three.isAlive = false;
  shared.holders.set('jobs', 'three');
  t.regex((await run('forget', 'three')).err, /it holds jobs/);
  shared.holders.delete('jobs');
  const forgotten = await run('forget', 'three');
  t.is(forgotten.code, 0, forgotten.err);
  t.false(forgotten.out.includes('three'));
  t.true(one.forgotten.has('three') && two.forgotten.has('three'));
});

test('[C13] cluster move fails when another host took what one was named for', async (t) => {
  const { run, two, shared } = await operate(t);
  new TestHost('three', shared);
  two.takesNothing = true;
  const moved = await run('move', 'reconciler', '--to', 'two');
  t.is(moved.code, 1, moved.out);
  t.regex(moved.err, /HF_CLUSTER_MOVE\n {2}reconciler was not moved: two did not take it, three did\./);
});

test('[C13] cluster forget names the hosts that gave no answer: they list the lost one still', async (t) => {
  const { run, one, two, shared } = await operate(t);
  const three = new TestHost('three', shared);
  [two.isAlive, three.isAlive] = [false, false];
  const forgotten = await run('forget', 'three');
  t.is(forgotten.code, 1, forgotten.out);
  t.regex(forgotten.err, /HF_CLUSTER_FORGET\n {2}The host three is forgotten here, and still listed by two,/);
  t.true(one.forgotten.has('three'));
});

test('[C13] a host that is cut off neither moves what it does not hold nor forgets a host: it does not know', async (t) => {
  const { run, one, two, shared } = await operate(t);
  two.isAlive = false;
  one.silentMs = 60_000;
  shared.holders.set('jobs', 'two');
  t.regex((await run('move', 'jobs')).err, /HF_CLUSTER_MOVE\n.*cut off: who holds it is unknown/);
  shared.holders.delete('jobs');
  t.regex(
    (await run('forget', 'two')).err,
    /HF_CLUSTER_HOST_LIVES\n.*cut off: whether that one lives is unknown/,
  );
  t.regex((await run('status')).out, /which hosts are there is unknown/);
});

test('[C13] a host that cannot read the ledger neither moves what it does not hold nor forgets a host', async (t) => {
  const { run, one, two, shared } = await operate(t);
  one.isUnread = true;
  two.isAlive = false;
  shared.holders.set('jobs', 'two');
  t.regex(
    (await run('move', 'jobs')).err,
    /HF_CLUSTER_MOVE\n.*cannot read the ledger: who holds it is unknown/,
  );
  t.regex(
    (await run('forget', 'two')).err,
    /HF_CLUSTER_HOST_LIVES\n.*cannot read the ledger: whether that one lives is unknown/,
  );
});

test('[C13] what an operator does is recorded with the name, and with the reason where one is given', async (t) => {
  const { run, one, two, shared } = await operate(t);
  const three = new TestHost('three', shared);
  three.isAlive = false;
  for (const act of [
    ['move', 'reconciler', '--to', 'two', '--reason', 'its disk is old'],
    ['drain'],
    ['drain', '--undo', '--reason', 'updated'],
    ['forget', 'three', '--reason', 'sold'],
  ]) {
    const { code, err } = await run(...act);
    t.is(code, 0, err);
  }
  const by = operatorName();
  t.deepEqual(one.recorded, [
    { name: 'reconciler', type: 'MOVE_REQUESTED', by, to: 'two', reason: 'its disk is old' },
    { name: 'one', type: 'DRAINED', by, reason: undefined },
    { name: 'one', type: 'UNDRAINED', by, reason: 'updated' },
  ]);
  t.deepEqual(one.forgottenBy, { by, reason: 'sold' });
  t.deepEqual(two.forgottenBy, { by, reason: 'sold' });
});

test('[C13] cluster move and drain say since when the new holder has it, which that one says a little later', async (t) => {
  const { run, one } = await operate(t);
  let asked = 0;
  one.heldSince = () => {
    asked += 1;
    return asked > 3 ? Date.UTC(2026, 0, 2) : undefined;
  };
  t.regex((await run('move', 'reconciler')).out, /^reconciler +two +2026-01-02 /m);
});

test('[C13] a host that stopped may be forgotten at once', async (t) => {
  const { run, one, shared } = await operate(t);
  new TestHost('three', shared);
  one.hasStopped = (host) => host === 'three';
  t.is((await run('forget', 'three')).code, 0);
  t.true(one.forgotten.has('three'));
});

test('[C13] cluster orphans says that there are none, and exports none that is not there', async (t) => {
  const { run } = await operate(t);
  t.is((await run('orphans')).out, 'this host has no orphaned branch\n');
  t.regex((await run('orphans', 'export', 'x', 'file')).err, /HF_CLI_USAGE/);
  t.regex((await run('orphans', 'export', '1', 'file')).err, /HF_CLUSTER_BRANCH\n.*no orphaned branch 1/);
});

test('[C13] cluster nkey makes a user of NATS whose secret is in a file of its own, and never in another one’s place', async (t) => {
  const { run } = await operate(t);
  const file = join(tempDir(t), 'nats.nk');
  const { code, out, err } = await run('nkey', file);
  t.is(code, 0, err);
  t.regex(out, /^U[A-Z2-7]{55}\n$/);
  t.regex(readFileSync(file, 'utf8'), /^SU[A-Z2-7]{56}$/);
  t.is(statSync(file).mode & 0o777, 0o600);
  t.regex((await run('nkey', file)).err, /HF_CLUSTER_NKEY_EXISTS/);
});
