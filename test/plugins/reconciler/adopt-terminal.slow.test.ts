/** `holdfast router adopt` asks a person on a terminal before anything is written to a router elsewhere. */
import test, { type ExecutionContext } from 'ava';
import { onTerminal } from '../../support/on-terminal.ts';
import { until } from '../../support/redis.ts';
import { tempDir } from '../../support/temp.ts';
import { Daemon } from '../router/remote/daemon.ts';
import { startRemote, writeRemoteConfig } from '../router/remote/instance.ts';

const binary = new URL('../../../bin/holdfast.js', import.meta.url).pathname;
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';

/** A router whose leg eth1.20 lacks its address, a Holdfast that only observes it, and the command on a terminal. */
async function asked(t: ExecutionContext) {
  const daemon = await Daemon.start(t);
  daemon.editByHand((config) => {
    delete config.interface.vlan['eth1.20'].ipv6;
  });
  const cwd = tempDir(t);
  const config = writeRemoteConfig(cwd, { url: daemon.url }, { adopted: false });
  const dataDir = `${cwd}/data`;
  await startRemote(t, dataDir, config);
  const argv = [process.execPath, binary, 'router', 'adopt', '--data-dir', dataDir, '--config', config];
  const line = argv.map((word) => `'${word}'`).join(' ');
  const open = async () => {
    const terminal = onTerminal(t, line, { cwd });
    await terminal.see(/eth1\.20 +IoT +fd5e:21aa:90c4:20::1\/64 +would be added/);
    await terminal.see(/Let it write to http:\/\/127\.0\.0\.1:\d+\? \[y\/N\] $/);
    return terminal;
  };
  return { daemon, open };
}

test.serial('[R24] adopt asks on a terminal, and only a yes lets the reconciler write', async (t) => {
  const { daemon, open } = await asked(t);
  for (const answer of ['\n', 'n\n', 'yess\n', CTRL_D]) {
    const terminal = await open();
    terminal.type(answer);
    t.is(await terminal.ended, 1, terminal.screen());
    t.regex(terminal.screen(), /Nothing was adopted, and nothing is written\./);
  }
  const interrupted = await open();
  interrupted.type(CTRL_C);
  t.is(await interrupted.ended, 130, interrupted.screen());
  t.deepEqual(daemon.posts, []);
  t.is(daemon.leg('eth1.20').ipv6, undefined);

  const terminal = await open();
  terminal.type('Y\n');
  t.is(await terminal.ended, 0, terminal.screen());
  t.regex(terminal.screen(), /The 5 legs of http:\/\/127\.0\.0\.1:\d+ are adopted by /);
  await until('IoT has its address', () => daemon.leg('eth1.20').ipv6 !== undefined);
  t.is(daemon.posts.length, 1);
});
