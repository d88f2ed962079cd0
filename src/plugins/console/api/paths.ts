/** The paths of the API as the surface has them: what answers them is loaded with the first question. */
export const PATHS = {
  GET: [
    '/api/session',
    '/api/log',
    '/api/records',
    '/api/records/at',
    '/api/records/{seq}',
    '/api/machines/{type}',
    '/api/stories',
    '/api/stories/{id}',
    '/api/density',
    '/api/actors',
    '/api/actors/{id}',
    '/api/events',
    '/api/openapi.json',
  ],
  POST: [],
} as const satisfies Readonly<Record<'GET' | 'POST', readonly string[]>>;
