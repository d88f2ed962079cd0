import { defineConfig } from 'holdfast';
import { healthchecks } from './plugin.ts';

export default defineConfig({ plugins: [healthchecks({ folder: '/etc/holdfast/pings' })] });
