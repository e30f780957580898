/** Loaded before a program (`--import`): writes the URLs of all modules that it loads to a file when it ends. */
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const file = process.env['LEDGER_TEST_MODULES'];
if (file !== undefined) {
  const urls: string[] = [];
  registerHooks({
    load: (url, context, next) => {
      urls.push(url);
      return next(url, context);
    },
  });
  process.on('exit', () => writeFileSync(file, JSON.stringify(urls)));
}
