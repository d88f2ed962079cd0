import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CreateMessageRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { startSessionServer } from '../../support/mcp-upstream.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { admission, Rig } from './rig.ts';

/** An upstream that asks its client, speaks up by itself, and has a prompt and a resource. */
export function talker(name: string, sessions: McpServer[], cancelled: string[]): McpServer {
  const capabilities = { logging: {}, tools: {} };
  const server = new McpServer({ name, version: '1.0.0' }, { capabilities, instructions: `Ask ${name}.` });
  server.registerTool('ask', {}, async (extra) => {
    const params = {
      messages: [{ role: 'user' as const, content: { type: 'text' as const, text: name } }],
      maxTokens: 5,
    };
    const { content } = await server.server.createMessage(params, { relatedRequestId: extra.requestId });
    return { content: [content].flat() as { type: 'text'; text: string }[] };
  });
  server.registerTool('wait', {}, async ({ signal, sendNotification, _meta }) => {
    const progressToken = _meta?.progressToken ?? '';
    await sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    cancelled.push(name);
    return { content: [] };
  });
  server.registerPrompt('greet', {}, async () => ({
    messages: [{ role: 'user', content: { type: 'text', text: `hello from ${name}` } }],
  }));
  server.registerResource('page', `${name}://page`, {}, async (uri) => ({
    contents: [{ uri: uri.href, text: name }],
  }));
  sessions.push(server);
  return server;
}

/** A gateway with two upstreams that talk, and a client that answers them. */
export async function setUp(t: ExecutionContext<unknown>) {
  const sessions: Record<'wiki' | 'docs', McpServer[]> = { wiki: [], docs: [] };
  const cancelled: string[] = [];
  const wiki = await startSessionServer(t, { serve: () => talker('wiki', sessions.wiki, cancelled) });
  const docs = await startSessionServer(t, { serve: () => talker('docs', sessions.docs, cancelled) });
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'docs', url: docs.url }),
    ],
  });
  const key = admission(await rig.mint({ servers: ['wiki', 'docs'] }));
  const client = new Client({ name: 'test', version: '1.0.0' }, { capabilities: { sampling: {} } });
  const sampled: string[] = [];
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    const text = JSON.stringify(params.messages);
    sampled.push(text);
    return {
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: `answer to ${/wiki|docs/.exec(text)}` },
    };
  });
  const heard: unknown[] = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    heard.push(params.data);
  });
  return { rig, key, client, heard, cancelled, wiki, docs, sessions };
}

export async function until(
  t: ExecutionContext<unknown>,
  what: string,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; ) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  t.fail(`not within ${PATIENCE_MS} ms: ${what}`);
}
