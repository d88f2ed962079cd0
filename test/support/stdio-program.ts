/**
 * A program that speaks MCP line by line and does what its tools are called for, also what no server may do. Without the SDK,
 * so that it starts at once. `stateless` as its first argument makes it one of revision 2026-07-28.
 */
import { spawn } from 'node:child_process';

const [mode = '', ...rest] = process.argv.slice(2);
const kept: Buffer[] = [];
const cancelled: unknown[] = [];
const seen: unknown[] = [];
const asked = new Map<string, unknown>();
let held: (() => void)[] = [];

const write = (message: object) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const answer = (id: unknown, value: unknown) => {
  const content = [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }];
  write({ id, result: { content, ...(mode === 'stateless' && { resultType: 'complete' }) } });
};
const listChanged = (params: object = {}) => write({ method: 'notifications/tools/list_changed', params });

type Params = { readonly arguments?: any; readonly _meta?: any; readonly [key: string]: unknown };

const TOOLS: Record<string, (id: unknown, params: Params) => void> = {
  echo: (id, { arguments: given }) => answer(id, given),
  pid: (id) => answer(id, process.pid),
  die: () => process.exit(3),
  abort: () => process.kill(process.pid, 'SIGABRT'),
  environment: (id) => answer(id, process.env),
  invocation: (id) => answer(id, { args: rest, cwd: process.cwd() }),
  seen: (id) => answer(id, seen),
  cancelled: (id) => answer(id, cancelled),
  silent: () => {},
  grow(id, { arguments: { mib } }) {
    for (let index = 0; index < mib; index += 1) kept.push(Buffer.alloc(1024 * 1024, 1));
    answer(id, 'grown');
  },
  print(id, { arguments: { text } }) {
    process.stderr.write(text, () => answer(id, 'printed'));
  },
  garbage(id, { arguments: { text } }) {
    process.stdout.write(`${text}\n`);
    answer(id, 'done');
  },
  endless() {
    const block = 'x'.repeat(1024 * 1024);
    const more = () => void process.stdout.write(block, more);
    more();
  },
  /** Progress of 40 MiB in all. */
  flood(id, { _meta: { progressToken } }) {
    const message = 'x'.repeat(1024 * 1024);
    for (let progress = 0; progress < 40; progress += 1) {
      write({ method: 'notifications/progress', params: { progressToken, progress, message } });
    }
    answer(id, 'done');
  },
  /** Reads nothing any more. */
  deaf(id) {
    process.stdin.pause();
    setInterval(() => {}, 1_000);
    answer(id, 'deaf');
  },
  strangers(id) {
    for (const other of [999, 'other', null, 1.5]) write({ id: other, result: { content: [] } });
    answer(id, 'mine');
  },
  progress(id, { _meta }) {
    for (const progress of [1, 2, 3]) {
      write({ method: 'notifications/progress', params: { progressToken: _meta?.progressToken, progress } });
    }
    answer(id, 'done');
  },
  log(id) {
    write({ method: 'notifications/message', params: { level: 'info', data: 'working' } });
    answer(id, 'done');
  },
  announce(id) {
    listChanged();
    answer(id, 'done');
  },
  ask(id) {
    asked.set('question-1', id);
    write({ id: 'question-1', method: 'roots/list' });
  },
  /** Answers when another call releases it, with progress before if that is wanted. */
  hold(id, { arguments: given, _meta: { progressToken } = {} }) {
    held.push(() => {
      if (progressToken !== undefined) {
        write({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
      }
      answer(id, given);
    });
  },
  release(id) {
    for (const one of held) one();
    held = [];
    answer(id, 'released');
  },
  /** Starts another program, as `timeout` does in a process group of its own, and ignores that it should end. */
  fork(id, { arguments: given }) {
    const [first = '', ...others] = given.ownGroup ? ['timeout', '1000', 'sleep', '1000'] : ['sleep', '1000'];
    const child = spawn(first, others, { stdio: 'ignore', env: { PATH: '/usr/bin:/bin' } });
    setInterval(() => {}, 1_000);
    process.on('SIGTERM', () => {});
    answer(id, [process.pid, child.pid]);
  },
};

function take(line: string): unknown {
  const { id, method, params = {}, result } = JSON.parse(line);
  if (method !== 'tools/call') seen.push({ method, params });
  switch (method) {
    case undefined:
      answer(asked.get(id), result);
      break;
    case 'initialize':
      if (mode === 'mute') return;
      if (mode === 'stateless') return write({ id, error: { code: -32601, message: 'Method not found' } });
      write({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: 'program', version: '1.0.0' },
        },
      });
      break;
    case 'server/discover':
      if (mode === 'mute') return;
      if (mode !== 'stateless') return write({ id, error: { code: -32601, message: 'Method not found' } });
      write({ id, result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {} } });
      break;
    case 'notifications/initialized':
      if (rest.includes('announce')) listChanged();
      break;
    case 'notifications/cancelled':
      cancelled.push(params.requestId);
      break;
    case 'subscriptions/listen': {
      const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
      write({ method: 'notifications/subscriptions/acknowledged', params: { _meta, notifications: {} } });
      break;
    }
    case 'tools/list':
      write({
        id,
        result: { tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: 'object' } })) },
      });
      break;
    case 'tools/call':
      TOOLS[params.name]?.(id, params);
      break;
    default:
      if (id !== undefined) write({ id, error: { code: -32601, message: 'Method not found' } });
  }
}

let unfinished = ''; // node:readline would also end a line at U+2028
process.stdin.setEncoding('utf8').on('data', (text: string) => {
  const lines = (unfinished + text).split('\n');
  unfinished = lines.pop() ?? '';
  for (const line of lines) take(line);
});
process.stdin.once('end', () => {
  if (process.listenerCount('SIGTERM') === 0) process.exit(0);
});
if (mode === 'exit') process.exit(4);
