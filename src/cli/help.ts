import { Help, type HelpConfiguration, type Option } from 'commander';

/**
 * Help that says what must be given: the options that are required stand in the usage line, and say so where they are described.
 */
export const helpOfOptions: HelpConfiguration = {
  commandUsage: (command) => {
    const usual = new Help().commandUsage(command);
    const needed = command.options.filter(isNeeded).map(({ flags, long }) => withoutShort(flags, long));
    // A usage line of its own names them already.
    const missing = needed.filter((flags) => !usual.includes(flags));
    return missing.length === 0 ? usual : `${withoutOptions(usual)} ${missing.join(' ')} [options]`;
  },
  optionDescription: (option) => {
    const usual = withoutEmptyDefault(new Help().optionDescription(option));
    return isNeeded(option) ? `${usual} (required)` : usual;
  },
};

/** That an option is off, or names nothing, when it is not given, goes without saying. */
const withoutEmptyDefault = (text: string): string =>
  text.replace(/ \(default: (\[\]|false)\)$/, '').replace(/, default: (\[\]|false)\)$/, ')');

const isNeeded = ({ mandatory, defaultValue }: Option): boolean => mandatory && defaultValue === undefined;

/** `-o, --output <file>` as it is typed: `--output <file>`. */
const withoutShort = (flags: string, long: string | undefined): string =>
  long === undefined ? flags : flags.slice(flags.indexOf(long));

const withoutOptions = (usage: string): string => usage.replace(/ \[options\]/, '');
