// Preloaded into a running Holdfast (`node --import`): reports which files of src ran a function between two messages
// of the parent process, by V8's precise coverage.
import { Session } from 'node:inspector/promises';

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

/** Files with a function that ran since the last call; each call begins anew. */
async function filesSince() {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const ran = ({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0);
  return result
    .filter((script) => script.url.includes('/src/') && !script.url.includes('/node_modules/'))
    .filter(ran)
    .map(({ url }) => url.slice(url.indexOf('/src/') + 1));
}

process.on('message', async () => process.send(await filesSince()));
process.channel?.unref();
