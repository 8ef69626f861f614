// Lets `node --test` import the TypeScript sources as they are: types are stripped by the pinned
// compiler, nothing is checked here (`npm run check` does that).
import { register } from 'node:module';

register('./ts-loader.mjs', import.meta.url);
