import { defineConfig } from '../../src/core/host/config/define-config.ts';
import { consolePlugin } from '../../src/plugins/console/index.ts';
import { reconciler } from '../../src/plugins/reconciler/index.ts';
import { router } from '../../src/plugins/router/index.ts';

/** What a test starts that needs a process with the router's stories in its log, and nothing more. */
export default defineConfig({ plugins: [router(), reconciler(), consolePlugin()] });
