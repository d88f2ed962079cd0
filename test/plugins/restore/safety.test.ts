import test from 'ava';
import { refuseLiveAddress } from '../../../src/plugins/restore/safety.ts';

const LIVE = 'http://127.0.0.1:6333';

for (const host of [
  '127.0.0.1',
  'localhost',
  '127.9.9.9',
  '[::1]',
  '0.0.0.0',
  '[::]',
  '[::ffff:127.0.0.1]',
]) {
  test(`[B5] ${host} is this machine, as the live store is, and no target of a restore`, async (t) => {
    await t.throwsAsync(refuseLiveAddress(LIVE, `http://${host}:6333`), { code: 'HF_RESTORE_LIVE' });
    await t.notThrowsAsync(refuseLiveAddress(LIVE, `http://${host}:6334`), 'another port is another store');
  });
}

test('[B5] another machine is a target, and a name that leads nowhere is none', async (t) => {
  await t.notThrowsAsync(refuseLiveAddress(LIVE, 'http://192.0.2.1:6333'));
  await t.throwsAsync(refuseLiveAddress(LIVE, 'http://nobody.invalid:6333'), { code: 'HF_RESTORE_SCRATCH' });
  await t.notThrowsAsync(refuseLiveAddress('http://nobody.invalid:6333', 'http://192.0.2.1:6333'));
  await t.throwsAsync(refuseLiveAddress('http://nobody.invalid', 'http://NOBODY.invalid:80'), {
    code: 'HF_RESTORE_LIVE',
  });
});
