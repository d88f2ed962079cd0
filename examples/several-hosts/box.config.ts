import { defineConfig } from 'holdfast';
import { consolePlugin } from 'holdfast/plugins/console';
import { router } from 'holdfast/plugins/router';

/** A router that is not one of the hosts: it stands for the box in the cellar. */
export default defineConfig({ plugins: [router(), consolePlugin()] });
