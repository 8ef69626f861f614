// Which properties of an alert are words of its sentence; the others have fields below it.

/** Where alerts are in the tree. */
export const ALERTS = '/configuration/alerts';

export const WORDS = ['when', 'statistic', 'condition', 'limit', 'for', 'days', 'from', 'until', 'mail', 'webhook', 'syslog', 'repeat'] as const;

export const isAlert = (path: string): boolean => path.startsWith(`${ALERTS}/`);
