import test from 'ava';
import fc from 'fast-check';
import {
  eventId,
  fromServer,
  readEventId,
  toServer,
} from '../../../src/plugins/gateway/aggregate/server-requests.ts';
import { type Message, readMessage } from '../../../src/plugins/gateway/mcp/message.ts';

const server = fc.stringMatching(/^[a-z][a-z0-9_]{0,20}$/);
const requestId = fc.oneof(fc.string(), fc.integer());

const reply = (id: unknown): Message =>
  readMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: {} }))) as Message;

test('[G23] whatever id and progress token a server uses, the answer of the client finds it again', (t) => {
  fc.assert(
    fc.property(server, requestId, requestId, (name, id, token) => {
      const asked = {
        jsonrpc: '2.0',
        id,
        method: 'sampling/createMessage',
        params: { _meta: { progressToken: token } },
      };
      const shown = fromServer(name, asked) as { id: string; params: { _meta: { progressToken: string } } };
      const back = toServer(reply(shown.id));
      t.is(back?.server, name);
      t.is(back?.message.body.id, id);
      const { progressToken } = shown.params._meta;
      const told = {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken, progress: 1 },
      };
      const progress = toServer(readMessage(Buffer.from(JSON.stringify(told))) as Message);
      t.is(progress?.server, name);
      t.deepEqual(progress?.message.body.params, { progressToken: token, progress: 1 });
    }),
  );
});

test('[G23] two servers that use one id are told apart, and an id that no server used means none', (t) => {
  const ids = ['wiki', 'docs'].map(
    (name) => (fromServer(name, { id: 1, method: 'ping' }) as { id: string }).id,
  );
  t.not(ids[0], ids[1]);
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (id) => {
      const found = toServer(reply(id));
      if (found)
        t.is(
          (fromServer(found.server, { id: found.message.body.id, method: 'ping' }) as { id: string }).id,
          id,
        );
    }),
  );
});

test('[G23] the id of an event says on which stream of which server it was', (t) => {
  const id = fc.string({ minLength: 1 });
  fc.assert(
    fc.property(server, fc.constantFrom('call' as const, 'merged' as const), id, (name, stream, event) => {
      t.deepEqual(readEventId(eventId(name, stream, event)), { server: name, stream, id: event });
    }),
  );
  for (const foreign of [undefined, '', '7', 'Wiki:1', 'wiki:']) t.is(readEventId(foreign), undefined);
});
