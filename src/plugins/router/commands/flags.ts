import type { CommandFlag } from '../../../core/host/plugin/command.ts';

/** Flags of commands that may speak to a router other than that of the instance here. */
export const targetFlags: readonly CommandFlag[] = [
  { flags: '--url <url>', summary: 'a router API other than that of the instance on the data folder' },
  { flags: '--token-file <file>', summary: 'bearer token for --url (mode 0600)' },
];

/** The flags of commands that change the config. */
export const changeFlags: readonly CommandFlag[] = [
  {
    flags: '--check <command>',
    summary: 'shell command that must succeed while the change is in force; may be given several times',
    repeatable: true,
  },
  { flags: '--yes', summary: 'keep the change without a question when the checks, if any, pass' },
  { flags: '--dry-run', summary: 'show what would change, and change nothing' },
  { flags: '--window <seconds>', summary: 'how long the router waits for a commit, when it is not ours' },
];

/** Exit codes of commands that change the config; 2 is wrong usage, as everywhere. */
export const EXIT = { committed: 0, refused: 1, reverted: 3, unknown: 4 } as const;
export const EXIT_TEXT = 'exit 0 kept or nothing to do, 1 nothing applied, 3 reverted, 4 unknown';
