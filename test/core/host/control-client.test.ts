import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import test, { type ExecutionContext } from 'ava';
import { askInstance } from '../../../src/core/host/operations/control-client.ts';
import { startChild } from '../../support/disk.ts';
import { tempDir } from '../../support/temp.ts';
import { until } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** A process that never ends what it is asked, and a question to it that is under way. */
async function asked(t: ExecutionContext) {
  const dataDir = tempDir(t);
  const child = startChild(t, new URL('../../support/frozen-child.ts', import.meta.url), [dataDir]);
  await child.line(/ready/);
  const clock = new VirtualClock();
  const over = new AbortController();
  const question = askInstance({ dataDir, clock, signal: over.signal }, '/lamp/on', {}, 'it has no lamp');
  await Promise.race([child.line(/asked/), question]);
  return { child, clock, over, question };
}

test.serial(
  '[C13] a command to an instance that is frozen ends after 15 s, and says which process it is',
  async (t) => {
    const { child, clock, question } = await asked(t);
    child.process.kill('SIGSTOP');
    await clock.advance(14_999);
    t.is(await Promise.race([question, 'it waits']), 'it waits');
    await clock.advance(1);
    const error = await t.throwsAsync(question, { code: 'HF_CONTROL_SILENT' });
    t.true(error?.message.includes(`process ${child.process.pid}`), error?.message);
    await until('nothing is watched any more', () => clock.armed === 0);
  },
);

test.serial(
  '[C13] a command waits for work that takes long, while the instance answers other questions',
  async (t) => {
    const { clock, over, question } = await asked(t);
    let answers = 0;
    const count = () => {
      answers += 1;
    };
    subscribe('http.client.response.finish', count);
    t.teardown(() => unsubscribe('http.client.response.finish', count));
    for (let looks = 1; looks <= 10; looks += 1) {
      await clock.advance(5_000);
      await until('it has answered', () => answers === looks);
    }
    over.abort(new Error('that is enough'));
    await t.throwsAsync(question, { message: 'that is enough' });
  },
);
