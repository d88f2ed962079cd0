import test from 'ava';
import { deliveredRegistrations } from '../../scripts/reference.ts';
import { coreCommands } from '../../src/cli/commands.ts';

const { commands } = await deliveredRegistrations();

for (const { name, summary } of [...coreCommands, ...commands]) {
  test(`the summary of ${name} is in the third person, with a capital letter and no full stop`, (t) => {
    t.regex(summary, /^[A-Z][a-z]*[^s\W]s /);
    t.notRegex(summary, /\.(?: |$)/);
  });
}
