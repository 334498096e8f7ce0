/* SPDX-License-Identifier: Apache-2.0 */
/* Names of time zones that the pattern letters z and Z read: the usual English ones, with their
 * offsets as Java gives them. Java knows several hundred more; these do not match here.
 * Read-only. */
#include "date_format.h"

static const struct {
    const char *name;
    int minutes; /* east of Greenwich */
} zones[] = {
    {"ACDT", 570},
    {"ACST", 570},
    {"ADT", -180},
    {"AEDT", 660},
    {"AEST", 600},
    {"AKDT", -480},
    {"AKST", -540},
    {"ART", -180},
    {"AST", -240},
    {"AWST", 480},
    {"Alaska Daylight Time", -480},
    {"Alaska Standard Time", -540},
    {"Argentina Standard Time", -180},
    {"Atlantic Daylight Time", -180},
    {"Atlantic Standard Time", -240},
    {"Australian Eastern Daylight Time", 660},
    {"Australian Eastern Standard Time", 600},
    {"Australian Western Standard Time", 480},
    {"BRT", -180},
    {"BST", 60},
    {"Brasilia Standard Time", -180},
    {"British Summer Time", 60},
    {"CAT", 120},
    {"CDT", -300},
    {"CEST", 120},
    {"CET", 60},
    {"CLT", -240},
    {"COT", -300},
    {"CST", -360},
    {"Central Daylight Time", -300},
    {"Central European Standard Time", 60},
    {"Central European Summer Time", 120},
    {"Central European Time", 60},
    {"Central Standard Time", -360},
    {"China Standard Time", 480},
    {"Coordinated Universal Time", 0},
    {"EAT", 180},
    {"EDT", -240},
    {"EEST", 180},
    {"EET", 120},
    {"EST", -300},
    {"East Africa Time", 180},
    {"Eastern Daylight Time", -240},
    {"Eastern European Standard Time", 120},
    {"Eastern European Summer Time", 180},
    {"Eastern Standard Time", -300},
    {"GST", 240},
    {"Greenwich Mean Time", 0},
    {"Gulf Standard Time", 240},
    {"HKT", 480},
    {"HST", -600},
    {"Hawaii Standard Time", -600},
    {"Hawaii-Aleutian Standard Time", -600},
    {"Hong Kong Standard Time", 480},
    {"ICT", 420},
    {"IDT", 180},
    {"IST", 120},
    {"India Standard Time", 330},
    {"Indochina Time", 420},
    {"Irish Standard Time", 60},
    {"Israel Daylight Time", 180},
    {"Israel Standard Time", 120},
    {"JST", 540},
    {"Japan Standard Time", 540},
    {"KST", 540},
    {"Korean Standard Time", 540},
    {"MDT", -360},
    {"MSD", 180},
    {"MSK", 180},
    {"MST", -420},
    {"Moscow Standard Time", 180},
    {"Mountain Daylight Time", -360},
    {"Mountain Standard Time", -420},
    {"NDT", -150},
    {"NPT", 345},
    {"NST", -210},
    {"NZDT", 780},
    {"NZST", 720},
    {"New Zealand Daylight Time", 780},
    {"New Zealand Standard Time", 720},
    {"PDT", -420},
    {"PET", -300},
    {"PKT", 300},
    {"PST", -480},
    {"Pacific Daylight Time", -420},
    {"Pacific Standard Time", -480},
    {"Pakistan Standard Time", 300},
    {"SAST", 120},
    {"SGT", 480},
    {"Singapore Standard Time", 480},
    {"South Africa Standard Time", 120},
    {"TRT", 180},
    {"UTC", 0},
    {"WAT", 60},
    {"WEST", 60},
    {"WET", 0},
    {"WIB", 420},
    {"Western European Summer Time", 60},
};

bool date_zone_find(const char *p, size_t len, size_t *name_len, int32_t *offset_ms)
{
    size_t best = 0;

    for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
        size_t n = strlen(zones[i].name);

        if (n <= best || n > len || strncasecmp(p, zones[i].name, n) != 0)
            continue;
        best = n;
        *offset_ms = zones[i].minutes * 60000;
    }
    *name_len = best;
    return best > 0;
}
