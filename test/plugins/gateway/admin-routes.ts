import { credentialFree, overwrite, relay } from '../../../src/plugins/gateway/index.ts';

/** Where nobody listens. */
export const nowhere = 'http://127.0.0.1:9/mcp';

/** One route of each kind and one more, for tests that call none of their upstreams. */
export const routes = [
  overwrite({ name: 'columnar_ro', url: nowhere }),
  relay({ name: 'memory', url: nowhere }),
  relay({ name: 'cluster', url: nowhere }),
  credentialFree({ name: 'repo_wiki', url: nowhere }),
];
