import test from 'ava';
import { type Config, exampleConfig, Rig, withCircle } from './rig.ts';

const WRITERS = 4;
const SAVES = 50;

test.serial(
  '[R3] 200 saves of four racing writers: one wins each ncid, the stale ones are told, no update is lost',
  async (t) => {
    const rig = await Rig.start(t);
    const accepted: { writer: number; n: number; posted: string; got: string }[] = [];
    let refused = 0;

    /** Each writer counts in a field of its own, so that a lost update would show as a counter that went back. */
    const write = async (writer: number): Promise<void> => {
      for (let n = 1; n <= SAVES; ) {
        const config: Config = await rig.active();
        const rename = n % 5 === 0;
        if (n % 7 === 0) config.ncid = exampleConfig().ncid;
        const leg = config.interface.vlan[`eth1.${writer + 2}0`];
        leg.extra = { ...leg.extra, [`writer${writer}`]: n };
        if (rename) leg.meta.name = `renamed ${n}`;
        else leg.mtu = 1400 + n;
        const { status, body } = await rig.set(config);
        if (status === 200) {
          accepted.push({ writer, n, posted: config.ncid, got: body.ncid });
          n += 1;
        } else {
          t.deepEqual(body, { errors: ['ncid not match'], code: 'HF_ROUTER_NCID_MISMATCH' });
          refused += 1;
          // A stale one is posted once; then the writer reads again, as it should.
          if (n % 7 === 0 && config.ncid === exampleConfig().ncid) {
            const again = await rig.active();
            again.interface.vlan[`eth1.${writer + 2}0`].extra = leg.extra;
            const second = await rig.set(again);
            if (second.status === 200) {
              accepted.push({ writer, n, posted: again.ncid, got: second.body.ncid });
              n += 1;
            }
          }
        }
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
    await rig.settled();

    t.is(accepted.length, WRITERS * SAVES);
    t.true(refused >= WRITERS * 7);
    t.is(
      new Set(accepted.map(({ got }) => got)).size,
      accepted.length,
      'every accepted write has its own ncid',
    );
    const chain = new Map(accepted.map(({ posted, got }) => [posted, got]));
    t.is(chain.size, accepted.length, 'no ncid was accepted twice');
    let ncid = exampleConfig().ncid;
    for (let i = 0; i < accepted.length; i += 1) ncid = chain.get(ncid)!;
    const final = await rig.active();
    t.is(ncid, final.ncid, 'the accepted writes are one chain from the first config to the last');
    for (let writer = 0; writer < WRITERS; writer += 1)
      t.is(final.interface.vlan[`eth1.${writer + 2}0`].extra[`writer${writer}`], SAVES);
    t.is((await rig.call('GET', '/v1/config/history?limit=1000')).body.entries.length, accepted.length);
    t.is(rig.divergence(), undefined);
  },
);

test.serial(
  '[R3] of posts with one ncid the first that can be applied wins; the others are refused, and none of them is stored',
  async (t) => {
    const rig = await Rig.start(t);
    const config = await rig.active();
    const post = (n: number) => (n < 2 ? withCircle({ ...exampleConfig() }) : { ...config, version: n });
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => rig.set(post(n))));
    await rig.settled();
    const won = answers.filter(({ status }) => status === 200);
    t.is(won.length, 1, 'a config that no kernel takes does not win, and keeps nobody from winning');
    const { version, ncid } = await rig.active();
    t.is(ncid, won[0]?.body.ncid);
    t.true(version >= 2);
    const posts = (await rig.records()).filter(({ event }) => event.type === 'SET');
    t.is(posts.length, 8, 'each has its record');
    const begun = posts.filter(({ effects }) => effects.some(({ type }) => type === 'router.apply'));
    for (const { event } of posts.filter((record) => !begun.includes(record))) {
      t.is(event.current, ncid);
      t.false('fingerprint' in event, 'the config of a post that has lost is not kept');
    }
    t.is(rig.divergence(), undefined);
  },
);

test.serial(
  'a burst beyond the queue is answered 503, and every request gets exactly one answer',
  async (t) => {
    const rig = await Rig.start(t, { options: { queueLimit: 4 } });
    const config = await rig.active();
    const answers = await Promise.all(Array.from({ length: 40 }, () => rig.set(config)));
    t.is(answers.filter(({ status }) => status === 200).length, 1);
    for (const { status, body } of answers) {
      if (status === 400) t.is(body.code, 'HF_ROUTER_NCID_MISMATCH');
      else if (status !== 200) t.deepEqual([status, body.code], [503, 'HF_ROUTER_BUSY']);
    }
  },
);
