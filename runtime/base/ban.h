/* SPDX-License-Identifier: Apache-2.0 */
/* Included before everything else in the runtime: calls that do not compile here. */
#ifndef BASE_BAN_H
#define BASE_BAN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAN(name) sorry_##name##_is_banned

#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef sprintf
#undef vsprintf
#undef gmtime
#undef localtime
#undef ctime
#undef asctime
#undef strtok
#undef atoi
#undef atol
#undef atof
#undef sleep
#undef usleep
#define strcpy(a, b) BAN(strcpy)
#define strcat(a, b) BAN(strcat)
#define strncpy(a, b, c) BAN(strncpy)
#define strncat(a, b, c) BAN(strncat)
#define sprintf(...) BAN(sprintf)
#define vsprintf(...) BAN(vsprintf)
#define gmtime(a) BAN(gmtime)
#define localtime(a) BAN(localtime)
#define ctime(a) BAN(ctime)
#define asctime(a) BAN(asctime)
#define strtok(a, b) BAN(strtok)
#define atoi(a) BAN(atoi)
#define atol(a) BAN(atol)
#define atof(a) BAN(atof)
#define sleep(a) BAN(sleep)
#define usleep(a) BAN(usleep)

#endif
