import { FailingDatabase } from './database.ts';
import { post, receive, span, traces } from './rig.ts';

/** Takes twenty spans, of which the database takes the first and hangs at the second; then it waits to be killed. */
const [, , dataDir = ''] = process.argv;
const database = new FailingDatabase();
const receiving = await receive({ teardown: () => {}, log: () => {} }, database, { lingerMs: 0 }, dataDir);
await post(receiving, '/v1/traces', traces('s', span('before')));
console.log(`inserted ${database.inserted[0]?.token}`);
database.fault = 'HF_COLUMNAR_UNREACHABLE';
for (let at = 0; at < 20; at += 1) {
  const { status } = await post(receiving, '/v1/traces', traces('s', span(`span ${at}`)));
  if (status !== 200) throw new Error(`answered ${status}`);
}
console.log('answered');
setTimeout(() => {}, 30_000);
