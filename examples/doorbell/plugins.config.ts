import { defineConfig } from 'holdfast';
import { doorbell } from './plugin.ts';

export default defineConfig({ plugins: [doorbell()] });
