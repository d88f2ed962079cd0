/**
 * Commands of this plugin that need neither an instance nor a configuration. The command line finds this file by its name
 * and loads it instead of every plugin, so that such a command starts at once.
 */
import type { CommandDefinition } from '../../core/host/plugin/command.ts';

/** `holdfast freshness`: reports by webhook that a job has not succeeded for too long, by the file that it touches. */
const freshness: CommandDefinition = {
  name: 'freshness',
  summary:
    'Reports a file that a job touches at each success when it is too old; needs no instance and no configuration',
  example: 'holdfast freshness --file /var/lib/nas-backup/last-success --url-file /etc/holdfast/nas-url',
  flags: [
    { flags: '--file <path>', summary: 'touched at each success' },
    { flags: '--max-age <time>', summary: 'older is stale', default: '36h' },
    { flags: '--url-file <path>', summary: 'file of mode 0600 with the address of the webhook' },
    { flags: '--url <url>', summary: 'the address, where no secret is in it' },
    { flags: '--token-file <path>', summary: 'file of mode 0600 with a bearer token' },
    { flags: '--insecure', summary: 'token and secret address may go to another machine over http' },
    { flags: '--format <name>', summary: 'ntfy or json', default: 'ntfy' },
    { flags: '--priority <number>', summary: '1, the most urgent, to 5', default: '1' },
    { flags: '--title <text>', summary: 'of the message', default: 'NAS backup STALE' },
    { flags: '--test', summary: 'send the message whatever the age, to see that it arrives' },
  ],
  run: async (...call) => (await import('./freshness.ts')).checkFreshness(...call),
};

export const standaloneCommands: readonly CommandDefinition[] = [freshness];
