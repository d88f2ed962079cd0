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
    '/api/overview',
    '/api/compare',
    '/api/pages',
    '/api/pages/{name}',
    '/api/actions',
    '/api/events',
    '/api/openapi.json',
  ],
  POST: ['/api/what-if', '/api/actions/{name}'],
} as const satisfies Readonly<Record<'GET' | 'POST', readonly string[]>>;
