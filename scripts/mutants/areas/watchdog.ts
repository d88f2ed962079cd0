import type { Area } from '../mutation.ts';

const area: Area = {
  sources: ['src/machines/watchdog/', 'src/plugins/watchdog/', 'deploy/'],
  mutations: [
    {
      breaks: 'O10: drifted engines are no failure',
      id: 'O10',
      tests: ['watchdog/'],
      find: 'if ($1 && $1.length > 0) {',
      put: 'if (false) {',
    },
    {
      breaks: 'O10: drift is not looked at',
      id: 'O10',
      tests: ['watchdog/'],
      find: 'data: await $1.drift($2),',
      put: 'data: [],',
    },
    {
      breaks: 'O10: every 50 min',
      id: 'O10',
      tests: ['watchdog/'],
      find: "default('*/5 * * * *')",
      put: "default('*/50 * * * *')",
    },
    {
      breaks: 'O10: 600 s are fresh',
      id: 'O10',
      tests: ['watchdog/'],
      find: 'default(300)',
      put: 'default(600)',
    },
    {
      breaks: 'O10: old rows are no failure',
      id: 'O10',
      tests: ['watchdog/'],
      find: 'if (age > $1) $2.fail(',
      put: 'if (false) $2.fail(',
    },
    {
      breaks: 'O10: no row of a declared producer is no failure',
      tests: ['watchdog/'],
      find: 'if (missing !== undefined) $1.fail(',
      put: 'if (false) $1.fail(',
    },
    {
      breaks: 'O10: a table that lost all of its rows is a fresh installation',
      id: 'O10',
      tests: ['watchdog/watchdog'],
      find: 'const missing = before.includes(table)',
      put: 'const missing = false',
    },
    {
      breaks: 'O10: what Holdfast writes itself counts as a sign of life',
      id: 'O10',
      tests: ['watchdog/'],
      find: 'WHERE ServiceName != {own:String} AND',
      put: "WHERE {own:String} != '' AND",
    },
    {
      breaks: 'O10: an unreachable database is no failure',
      id: 'O10',
      tests: ['watchdog/'],
      find: "failures: [{ check: 'database', query: 'for a database', found: $1 }]",
      put: 'failures: []',
    },
    {
      breaks: 'O10: a heartbeat in spite of failures',
      id: 'O10',
      tests: ['watchdog/'],
      find: "$1.type === 'CHECKED' && $1.failures.length > 0",
      put: 'false',
    },
    {
      breaks: 'O10: failed checks exit 1',
      id: 'O10',
      tests: ['watchdog/'],
      find: "join('; ')}`], 0)",
      put: "join('; ')}`], 1)",
    },
    {
      breaks: 'O11: a push that failed exits 0',
      id: 'O11',
      tests: ['watchdog/'],
      find: "'undelivered', [line], 1)",
      put: "'undelivered', [line], 0)",
    },
    {
      breaks: 'O13: a deadline of 240 s',
      id: 'O13',
      tests: ['watchdog/'],
      find: 'DEADLINE_MS = 120_000',
      put: 'DEADLINE_MS = 240_000',
    },
    {
      breaks: 'O13: a run without an end is not ended',
      id: 'O13',
      tests: ['watchdog/'],
      find: "{ target: 'killed', actions: $1('overdue') },",
      put: '',
    },
    {
      breaks: 'O13: a killed run is told as a failed delivery',
      id: 'O13',
      tests: ['watchdog/'],
      find: "return report($1, 'killed', [$2($1.deadlineMs)",
      put: "return report($1, 'undelivered', [$2($1.deadlineMs)",
    },
    {
      breaks: 'O14: failed checks are a failed job',
      id: 'O14',
      tests: ['watchdog/'],
      find: "if ($1 === 'delivered' || $1 === 'unhealthy') {",
      put: "if ($1 === 'delivered') {",
    },
    {
      breaks: 'O14: health is green although no heartbeat was sent',
      id: 'O14',
      tests: ['watchdog/'],
      find: "...($1 !== 'delivered' && { ok: false,",
      put: '...(false && { ok: false,',
    },
    {
      breaks: 'O10: a check that goes on failing began just now',
      tests: ['machines/watchdog'],
      find: '$1.failing[check] ?? $2.time',
      put: '$2.time',
    },
    {
      breaks: 'the timer of the host runs once a week',
      tests: ['deploy/intervals'],
      find: 'OnCalendar=*:0/5',
      put: 'OnCalendar=weekly',
    },
    {
      breaks: 'the CronJob runs every 50 min',
      tests: ['deploy/intervals'],
      find: "schedule: '*/5 * * * *'",
      put: "schedule: '*/50 * * * *'",
    },
  ],
  automatic: {
    sources: ['src/machines/watchdog/', 'src/plugins/watchdog/'],
    tests: ['machines/watchdog/', 'plugins/watchdog/'],
    equivalent: [
      {
        find: "signal.removeEventListener('abort', abort);",
        put: ';',
        because:
          'the signal is of this one call, and the promise that it would reject has no reader any more',
      },
      {
        find: 'startedAt: 0, failing: {}',
        put: 'startedAt: 1, failing: {}',
        because: 'the first event that is heard, RUN or START, sets it before anything reads it',
      },
    ],
  },
};

export default area;
