/* SPDX-License-Identifier: Apache-2.0 */
/* sasl.jaas.config taken apart. Pure. */
#ifndef BASE_JAAS_H
#define BASE_JAAS_H

#include "base/props.h"

enum jaas_module { JAAS_PASSWORD, JAAS_OAUTH, JAAS_KERBEROS };

/* The options of the one login module that text names, under librdkafka's names: sasl.username,
 * sasl.password; sasl.oauthbearer.client.id, .client.secret, .scope, .extensions ("a=1,b=2"), and
 * with unsecuredLogin… options enable.sasl.oauthbearer.unsecure.jwt and sasl.oauthbearer.config;
 * sasl.kerberos.…. module may be NULL. MR_ERR_CONFIG says what is wrong, and holds no word of text
 * but a module's name; options is untouched then. */
int jaas_parse(const char *text, struct props *options, enum jaas_module *module,
               struct mr_error *err);

#endif
