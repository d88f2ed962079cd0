/**
 * Commands of this plugin that need neither an instance nor a configuration. The command line finds this file by its name
 * and loads it instead of every plugin, so that such a command starts at once.
 */
import type { CommandDefinition } from '../../core/host/plugin/command.ts';

/** `holdfast heartbeat`: one sample that says that the host and its collector live, whatever became of the processes on it. */
const heartbeat: CommandDefinition = {
  name: 'heartbeat',
  summary:
    'Sends one sample of router.diag.heartbeat: the host and its collector live; needs no instance and no configuration',
  example: 'holdfast heartbeat --endpoint http://127.0.0.1:4318 --token-file /etc/holdfast/ingest-key',
  flags: [
    {
      flags: '--endpoint <url>',
      summary: 'base of an OTLP/HTTP receiver; OTEL_EXPORTER_OTLP_ENDPOINT without it',
    },
    { flags: '--token-file <path>', summary: 'file of mode 0600 with the ingest key' },
    { flags: '--insecure', summary: 'the key may go to another machine over http' },
  ],
  run: async (...call) => (await import('./heartbeat.ts')).sendHeartbeat(...call),
};

export const standaloneCommands: readonly CommandDefinition[] = [heartbeat];
