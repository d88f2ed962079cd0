// Preloaded into every process of a trial (`--import` in NODE_OPTIONS), and so into its worker threads: puts the changed
// text in the place of one file while Node loads it, or while a test reads it where it is no source. No file of the
// checkout is touched. Which one, and where to note that it was loaded, stands in the JSON file that the query of this
// module's URL names. Without a changed file it notes every source that is loaded.
import childProcess from 'node:child_process';
import fs from 'node:fs';
import { registerHooks, syncBuiltinESMExports } from 'node:module';
import { fileURLToPath } from 'node:url';

const { appendFileSync, readFileSync, promises } = fs;
const order = decodeURIComponent(new URL(import.meta.url).search.slice(1));
const { sources, url, text, note } = JSON.parse(readFileSync(order, 'utf8'));
const loaded = (what = url) => {
  try {
    appendFileSync(note, `${what}\n`);
  } catch {
    // A test may give a program a disk that it cannot write on; failing here would look like a change that was noticed.
  }
};

registerHooks({
  load(specifier, context, next) {
    const original = next(specifier, context);
    const plain = specifier.replace(/[?#].*$/, '');
    if (url === undefined && plain.startsWith(sources)) loaded(plain);
    if (plain !== url) return original;
    loaded();
    return { ...original, source: text };
  },
});

if (url !== undefined && !url.startsWith(sources)) {
  const isMeant = (file) => (file instanceof URL ? file.href === url : file === fileURLToPath(url));
  const content = (options) => (options ? text : Buffer.from(text));
  const instead = (read, answer) => (file, options) => {
    if (!isMeant(file)) return read(file, options);
    loaded();
    return answer(options);
  };
  fs.readFileSync = instead(readFileSync, content);
  promises.readFile = instead(promises.readFile, async (options) => content(options));
  syncBuiltinESMExports();
}

// Many tests start the product in an environment of their own choice.
const { spawn } = childProcess.ChildProcess.prototype;
childProcess.ChildProcess.prototype.spawn = function (options) {
  const { NODE_OPTIONS } = process.env;
  const own = options.envPairs?.some((pair) => pair.startsWith('NODE_OPTIONS='));
  if (options.envPairs && !own) options.envPairs.push(`NODE_OPTIONS=${NODE_OPTIONS}`);
  return spawn.call(this, options);
};
