import type { Area } from '../mutation.ts';

const area: Area = {
  sources: ['src/machines/watchdog/', 'src/plugins/watchdog/', 'deploy/'],
  mutations: [
    {
      breaks: 'O10: drifted engines are no failure',
      id: 'O10',
      find: 'if ($1 && $1.length > 0) {',
      put: 'if (false) {',
    },
    { breaks: 'O10: drift is not looked at', id: 'O10', find: 'data: await $1.drift($2),', put: 'data: [],' },
    {
      breaks: 'O10: every 50 min',
      id: 'O10',
      find: "default('*/5 * * * *')",
      put: "default('*/50 * * * *')",
    },
    { breaks: 'O10: 600 s are fresh', id: 'O10', find: 'default(300)', put: 'default(600)' },
    {
      breaks: 'O10: old rows are no failure',
      id: 'O10',
      find: 'if (age > $1) $2.fail(',
      put: 'if (false) $2.fail(',
    },
    {
      breaks: 'O10: no row of a declared producer is no failure',
      tests: ['watchdog/'],
      find: 'if ($1) $2.fail(',
      put: 'if (false) $2.fail(',
    },
    {
      breaks: 'O10: what Holdfast writes itself counts as a sign of life',
      id: 'O10',
      find: 'WHERE ServiceName != {own:String} AND',
      put: "WHERE {own:String} != '' AND",
    },
    {
      breaks: 'O10: an unreachable database is no failure',
      id: 'O10',
      find: "failures: [{ check: 'database', asked: 'for a database', found: $1 }]",
      put: 'failures: []',
    },
    {
      breaks: 'O10: a heartbeat in spite of failures',
      id: 'O10',
      find: "$1.type === 'CHECKED' && $1.failures.length > 0",
      put: 'false',
    },
    {
      breaks: 'O10: failed checks exit 1',
      id: 'O10',
      find: "join('; ')}`], 0)",
      put: "join('; ')}`], 1)",
    },
    {
      breaks: 'O11: a push that failed exits 0',
      id: 'O11',
      find: "'undelivered', [line], 1)",
      put: "'undelivered', [line], 0)",
    },
    {
      breaks: 'O13: a deadline of 240 s',
      id: 'O13',
      find: 'DEADLINE_MS = 120_000',
      put: 'DEADLINE_MS = 240_000',
    },
    {
      breaks: 'O13: a run without an end is not ended',
      id: 'O13',
      find: "after: { deadline: { target: 'killed', actions: $1('overdue') } },",
      put: '',
    },
    {
      breaks: 'O13: a killed run is told as a failed delivery',
      id: 'O13',
      find: "report( $1, 'killed', [`DEADLINE EXCEEDED",
      put: "report( $1, 'undelivered', [`DEADLINE EXCEEDED",
    },
    {
      breaks: 'O14: failed checks are a failed job',
      id: 'O14',
      find: "if ($1 === 'delivered' || $1 === 'unhealthy') {",
      put: "if ($1 === 'delivered') {",
    },
    {
      breaks: 'O14: health is green although no heartbeat was sent',
      id: 'O14',
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
      tests: ['watchdog/'],
      find: 'OnCalendar=*:0/5',
      put: 'OnCalendar=weekly',
    },
    {
      breaks: 'the CronJob runs every 50 min',
      tests: ['watchdog/'],
      find: "schedule: '*/5 * * * *'",
      put: "schedule: '*/50 * * * *'",
    },
  ],
  automatic: {
    sources: ['src/machines/watchdog/', 'src/plugins/watchdog/'],
    tests: ['machines/watchdog/', 'watchdog/one-shot', 'watchdog/told-apart', 'watchdog/watchdog.slow'],
  },
};

export default area;
