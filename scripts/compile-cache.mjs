// Loaded into every worker of AVA and its threads before anything else: half of a test file's start is reading what
// the one before has read. Not the variable NODE_COMPILE_CACHE, which the programs that tests start would inherit:
// the product runs under other flags of V8, and each would refuse and overwrite what the other has compiled.
import module from 'node:module';
import { fileURLToPath } from 'node:url';

module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/holdfast', import.meta.url)));
