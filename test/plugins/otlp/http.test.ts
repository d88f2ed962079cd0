import test from 'ava';
import { type ColumnarRig, openColumnar } from '../../support/columnar.ts';
import { post, receive, span, traces } from './rig.ts';

let columnar: ColumnarRig;
test.before(async () => {
  columnar = await openColumnar();
});
test.after.always(() => columnar.close());

async function countOf(service: string): Promise<number> {
  const sql = 'SELECT count() AS n FROM default.otel_traces WHERE ServiceName = {service:String}';
  const [row] = await columnar.database.query<{ n: string }>(sql, { service });
  return Number(row?.n);
}

test.serial(
  '[O1] a span by curl is answered with an empty partialSuccess, and is in the table then',
  async (t) => {
    const receiving = await receive(t, columnar.database);
    const answer = await post(receiving, '/v1/traces', traces('probe', span('hello')));
    t.is(answer.status, 200);
    t.deepEqual(await answer.json(), { partialSuccess: {} });
    t.is(await countOf('probe'), 1);
  },
);

test.serial(
  '[O2] without the key, with a wrong one or behind a scheme: 401, nothing echoed, nothing kept',
  async (t) => {
    const receiving = await receive(t, columnar.database);
    const body = traces('stranger', span('hello'));
    const refused = async (authorization: string) => {
      const answer = await post(receiving, '/v1/traces', body, { authorization });
      t.is(answer.status, 401);
      const text = await answer.text();
      t.false(text.includes(receiving.key));
      return JSON.parse(text);
    };
    t.deepEqual(await refused(''), {
      code: 16,
      message: 'missing or empty authorization header: Authorization',
    });
    const wrong = await refused('11111111-2222-3333-4444-canarycanary');
    t.is(wrong.code, 16);
    t.false(wrong.message.includes('canary'));
    t.regex((await refused(`Bearer ${receiving.key}`)).message, /raw key/);
    t.is(await countOf('stranger'), 0);
  },
);
