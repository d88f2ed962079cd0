import { defineConfig } from 'holdfast';
import { upsWatch } from './plugin.ts';

export default defineConfig({ plugins: [upsWatch({ name: 'cellar' })] });
