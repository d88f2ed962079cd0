/** Loaded before the tests of a project's plugins: `holdfast` and its packages are those of this installation. */
import { serveOwnModules } from '../../core/host/config/load.ts';

serveOwnModules();
