// Preloaded into every process of a trial (`--import` in NODE_OPTIONS), and so into its worker threads: puts the changed
// text in the place of one source file while Node loads it. No file of the checkout is touched. Which one, and where to
// note that it was loaded, stands in the JSON file that the query of this module's URL names.
import childProcess from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const order = decodeURIComponent(new URL(import.meta.url).search.slice(1));
const { url, text, note } = JSON.parse(readFileSync(order, 'utf8'));

registerHooks({
  load(specifier, context, next) {
    const loaded = next(specifier, context);
    if (specifier.replace(/[?#].*$/, '') !== url) return loaded;
    appendFileSync(note, `${process.pid}\n`);
    return { ...loaded, source: text };
  },
});

// Many tests start the product in an environment of their own choice.
const { spawn } = childProcess.ChildProcess.prototype;
childProcess.ChildProcess.prototype.spawn = function (options) {
  const { NODE_OPTIONS } = process.env;
  const own = options.envPairs?.some((pair) => pair.startsWith('NODE_OPTIONS='));
  if (options.envPairs && !own) options.envPairs.push(`NODE_OPTIONS=${NODE_OPTIONS}`);
  return spawn.call(this, options);
};
