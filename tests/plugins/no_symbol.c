/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object, but no plugin. */
int no_symbol_answer(void);

__attribute__((visibility("default"))) int no_symbol_answer(void)
{
    return 42;
}
