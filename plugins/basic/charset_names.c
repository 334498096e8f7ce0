/* SPDX-License-Identifier: Apache-2.0 */
/* The names under which Java 17 knows its charsets, and what glibc's iconv calls each. Looked
 * through once, when a converter starts. Names that iconv knows and Java doesn't (UTF-7) are
 * refused, as a Java worker would refuse them. Left out are the charsets that iconv lacks or reads
 * otherwise in many places, and those of charset.c's own (UTF-8, UTF-16, UTF-32). */
#include "charset.h"

#include <strings.h>

struct charset_name {
    const char *java;
    const char *iconv;
    const char *aliases; /* separated by blanks */
};

static const struct charset_name names[] = {
    {"Big5", "BIG5", "csBig5"},
    {"Big5-HKSCS", "BIG5-HKSCS", "big5hk Big5_HKSCS big5hkscs"},
    {"EUC-JP", "EUC-JP",
     "csEUCPkdFmtjapanese x-euc-jp eucjis"
     " Extended_UNIX_Code_Packed_Format_for_Japanese euc_jp eucjp x-eucjp"},
    {"EUC-KR", "EUC-KR",
     "ksc5601-1987 csEUCKR ksc5601_1987 ksc5601 5601 euc_kr ksc_5601 ks_c_5601-1987 euckr"},
    {"GB18030", "GB18030", "gb18030-2022"},
    {"GB2312", "GB2312", "euc-cn x-EUC-CN euccn EUC_CN gb2312-80 gb2312-1980"},
    {"GBK", "GBK", "CP936 windows-936"},
    {"IBM00858", "CP858", "PC-Multilingual-850+euro ibm858 cp858 858 cp00858 ibm-858 ccsid00858"},
    {"IBM01140", "IBM1140", "ibm1140 ebcdic-us-037+euro cp1140 ibm-1140 1140 cp01140 ccsid01140"},
    {"IBM01141", "IBM1141", "ibm1141 cp01141 ibm-1141 1141 cp1141 ccsid01141 ebcdic-de-273+euro"},
    {"IBM01142", "IBM1142",
     "cp01142 ibm1142 ccsid01142 ebcdic-no-277+euro ibm-1142 1142 cp1142 ebcdic-dk-277+euro"},
    {"IBM01143", "IBM1143",
     "cp01143 ccsid01143 ibm1143 ebcdic-se-278+euro ibm-1143 1143 cp1143 ebcdic-fi-278+euro"},
    {"IBM01144", "IBM1144", "cp01144 ccsid01144 ebcdic-it-280+euro ibm1144 ibm-1144 1144 cp1144"},
    {"IBM01145", "IBM1145", "ccsid01145 ebcdic-es-284+euro ibm1145 ibm-1145 1145 cp01145 cp1145"},
    {"IBM01146", "IBM-1146", "ibm-1146 1146 cp01146 ibm1146 ccsid01146 ebcdic-gb-285+euro cp1146"},
    {"IBM01147", "CP1147", "cp1147 ibm-1147 1147 cp01147 ccsid01147 ebcdic-fr-277+euro ibm1147"},
    {"IBM01148", "CP1148",
     "cp1148 ebcdic-international-500+euro ibm-1148 1148 cp01148 ccsid01148 ibm1148"},
    {"IBM01149", "IBM-1149", "ebcdic-s-871+euro ibm-1149 1149 cp1149 ccsid01149 ibm1149 cp01149"},
    {"IBM037", "IBM037",
     "cp037 ibm-037 csIBM037 ebcdic-cp-us ebcdic-cp-ca ebcdic-cp-nl ebcdic-cp-wt 037"
     " cpibm37 cs-ebcdic-cp-wt ibm-37 cs-ebcdic-cp-us cs-ebcdic-cp-ca"
     " cs-ebcdic-cp-nl"},
    {"IBM1026", "IBM1026", "cp1026 ibm-1026 1026"},
    {"IBM1047", "IBM1047", "ibm-1047 1047 cp1047"},
    {"IBM273", "IBM273", "ibm-273 273 cp273"},
    {"IBM277", "IBM277", "277 cp277 ibm-277"},
    {"IBM278", "IBM278", "cp278 278 ibm-278 ebcdic-cp-se csIBM278 ebcdic-sv"},
    {"IBM280", "IBM280", "280 cp280 ibm-280"},
    {"IBM284", "IBM284", "csIBM284 ibm-284 cpibm284 284 cp284"},
    {"IBM285", "IBM285", "csIBM285 cp285 ebcdic-gb ibm-285 cpibm285 285 ebcdic-cp-gb"},
    {"IBM297", "IBM297", "297 csIBM297 cp297 ibm-297 cpibm297 ebcdic-cp-fr"},
    {"IBM420", "IBM420", "420 cp420 csIBM420 ibm-420 ebcdic-cp-ar1"},
    {"IBM424", "IBM424", "ebcdic-cp-he csIBM424 ibm-424 424 cp424"},
    {"IBM437", "IBM437", "437 ibm-437 cspc8codepage437 cp437 windows-437"},
    {"IBM500", "IBM500", "ibm-500 500 ebcdic-cp-bh ebcdic-cp-ch csIBM500 cp500"},
    {"IBM775", "IBM775", "ibm-775 775 cp775"},
    {"IBM850", "IBM850", "cp850 cspc850multilingual 850 ibm-850"},
    {"IBM852", "IBM852", "csPCp852 ibm-852 852 cp852"},
    {"IBM855", "IBM855", "855 ibm-855 cp855 cspcp855"},
    {"IBM857", "IBM857", "857 cp857 csIBM857 ibm-857"},
    {"IBM860", "IBM860", "860 cp860 csIBM860 ibm-860"},
    {"IBM861", "IBM861", "cp861 861 ibm-861 cp-is csIBM861"},
    {"IBM862", "IBM862", "csIBM862 cp862 862 cspc862latinhebrew ibm-862"},
    {"IBM863", "IBM863", "csIBM863 ibm-863 863 cp863"},
    {"IBM864", "IBM864", "csIBM864 ibm-864 864 cp864"},
    {"IBM865", "IBM865", "ibm-865 csIBM865 cp865 865"},
    {"IBM866", "IBM866", "866 ibm-866 csIBM866 cp866"},
    {"IBM869", "IBM869", "cp869 869 ibm-869 cp-gr csIBM869"},
    {"IBM870", "IBM870", "870 cp870 csIBM870 ibm-870 ebcdic-cp-roece ebcdic-cp-yu"},
    {"IBM871", "IBM871", "871 cp871 ebcdic-cp-is csIBM871 ibm-871"},
    {"ISO-2022-CN", "ISO-2022-CN", "csISO2022CN ISO2022CN"},
    {"ISO-2022-JP", "ISO-2022-JP", "csjisencoding iso2022jp jis_encoding jis csISO2022JP"},
    {"ISO-2022-JP-2", "ISO-2022-JP-2", "csISO2022JP2 iso2022jp2"},
    {"ISO-8859-1", "ISO-8859-1",
     "819 ISO8859-1 l1 ISO_8859-1:1987 ISO_8859-1 8859_1 iso-ir-100 latin1 cp819"
     " ISO8859_1 IBM819 ISO_8859_1 IBM-819 csISOLatin1"},
    {"ISO-8859-13", "ISO-8859-13", "iso_8859-13 ISO8859-13 iso8859_13 8859_13"},
    {"ISO-8859-15", "ISO-8859-15",
     "csISO885915 Latin-9 ISO8859-15 LATIN0 ISO8859_15_FDIS ISO8859_15 cp923 8859_15"
     " L9 IBM923 csISOlatin9 ISO_8859-15 IBM-923 csISOlatin0 923 LATIN9"},
    {"ISO-8859-16", "ISO-8859-16",
     "ISO_8859-16:2001 ISO_8859-16 csISO885916 latin10 iso-ir-226 l10 ISO8859_16"},
    {"ISO-8859-2", "ISO-8859-2",
     "ISO8859-2 ibm912 l2 ISO_8859-2 8859_2 cp912 ISO_8859-2:1987 iso8859_2"
     " iso-ir-101 latin2 912 csISOLatin2 ibm-912"},
    {"ISO-8859-3", "ISO-8859-3",
     "ISO8859-3 ibm913 8859_3 l3 cp913 ISO_8859-3 iso8859_3 latin3 csISOLatin3 913"
     " ISO_8859-3:1988 ibm-913 iso-ir-109"},
    {"ISO-8859-4", "ISO-8859-4",
     "8859_4 latin4 l4 cp914 ISO_8859-4:1988 ibm914 ISO_8859-4 iso-ir-110 iso8859_4"
     " csISOLatin4 iso8859-4 914 ibm-914"},
    {"ISO-8859-5", "ISO-8859-5",
     "ISO_8859-5:1988 csISOLatinCyrillic iso-ir-144 iso8859_5 cp915 8859_5 ibm-915"
     " ISO_8859-5 ibm915 915 cyrillic ISO8859-5"},
    {"ISO-8859-6", "ISO-8859-6",
     "ASMO-708 8859_6 iso8859_6 ISO_8859-6 csISOLatinArabic ibm1089 arabic ibm-1089"
     " 1089 ECMA-114 iso-ir-127 ISO_8859-6:1987 ISO8859-6 cp1089"},
    {"ISO-8859-7", "ISO-8859-7",
     "greek 8859_7 greek8 ibm813 ISO_8859-7 iso8859_7 ELOT_928 cp813 ISO_8859-7:1987"
     " sun_eu_greek csISOLatinGreek iso-ir-126 813 iso8859-7 ECMA-118 ibm-813"},
    {"ISO-8859-8", "ISO-8859-8",
     "8859_8 ISO_8859-8 ISO_8859-8:1988 cp916 iso-ir-138 ISO8859-8 hebrew iso8859_8"
     " ibm-916 csISOLatinHebrew 916 ibm916"},
    {"ISO-8859-9", "ISO-8859-9",
     "ibm-920 ISO_8859-9 8859_9 ISO_8859-9:1989 ibm920 latin5 l5 iso8859_9 cp920 920"
     " iso-ir-148 ISO8859-9 csISOLatin5"},
    {"KOI8-R", "KOI8-R", "koi8_r koi8 cskoi8r"},
    {"KOI8-U", "KOI8-U", "koi8_u"},
    {"Shift_JIS", "SHIFT_JIS", "x-sjis sjis shift-jis ms_kanji csShiftJIS"},
    {"TIS-620", "TIS-620", "tis620 tis620.2533"},
    {"US-ASCII", "US-ASCII",
     "ANSI_X3.4-1968 cp367 csASCII iso-ir-6 ASCII iso_646.irv:1983 ANSI_X3.4-1986"
     " ascii7 default ISO_646.irv:1991 ISO646-US IBM367 646 us"},
    {"UTF-16BE", "UTF-16BE", "X-UTF-16BE UTF_16BE ISO-10646-UCS-2 UnicodeBigUnmarked"},
    {"UTF-16LE", "UTF-16LE", "UnicodeLittleUnmarked UTF_16LE X-UTF-16LE"},
    {"UTF-32BE", "UTF-32BE", "X-UTF-32BE UTF_32BE"},
    {"UTF-32LE", "UTF-32LE", "X-UTF-32LE UTF_32LE"},
    {"windows-1250", "WINDOWS-1250", "cp1250 cp5346"},
    {"windows-1251", "WINDOWS-1251", "cp5347 ansi-1251 cp1251"},
    {"windows-1252", "WINDOWS-1252", "ibm-1252 cp1252 ibm1252 cp5348"},
    {"windows-1253", "WINDOWS-1253", "cp1253 cp5349"},
    {"windows-1254", "WINDOWS-1254", "cp1254 cp5350"},
    {"windows-1255", "WINDOWS-1255", "cp1255"},
    {"windows-1256", "WINDOWS-1256", "cp1256"},
    {"windows-1257", "WINDOWS-1257", "cp1257 cp5353"},
    {"windows-1258", "WINDOWS-1258", "cp1258"},
    {"windows-31j", "WINDOWS-31J", "MS932 windows-932 csWindows31J"},
    {"x-EUC-TW", "EUC-TW", "euctw cns11643 EUC-TW euc_tw"},
    {"x-eucJP-Open", "EUCJP-OPEN", "eucJP-open EUC_JP_Solaris"},
    {"x-IBM1025", "IBM-1025", "ibm-1025 1025 cp1025 ibm1025"},
    {"x-IBM1097", "IBM1097", "ibm1097 ibm-1097 1097 cp1097"},
    {"x-IBM1112", "IBM1112", "ibm1112 ibm-1112 1112 cp1112"},
    {"x-IBM1122", "CP1122", "cp1122 ibm1122 ibm-1122 1122"},
    {"x-IBM1123", "IBM1123", "ibm1123 ibm-1123 1123 cp1123"},
    {"x-IBM1124", "IBM-1124", "ibm-1124 1124 cp1124 ibm1124"},
    {"x-IBM1129", "IBM1129", "1129 ibm1129 cp1129 ibm-1129"},
    {"x-IBM1166", "CP1166", "cp1166 ibm1166 ibm-1166 1166"},
    {"x-IBM1364", "CP1364", "cp1364 ibm1364 ibm-1364 1364"},
    {"x-IBM737", "CP737", "cp737 ibm737 737 ibm-737"},
    {"x-IBM856", "IBM856", "ibm856 856 cp856 ibm-856"},
    {"x-IBM874", "IBM874", "ibm-874 ibm874 874 cp874"},
    {"x-IBM875", "IBM875", "ibm-875 ibm875 875 cp875"},
    {"x-IBM921", "IBM921", "ibm921 921 ibm-921 cp921"},
    {"x-IBM922", "IBM922", "ibm922 922 cp922 ibm-922"},
    {"x-IBM930", "IBM-930", "ibm-930 ibm930 930 cp930"},
    {"x-IBM933", "IBM933", "ibm933 933 cp933 ibm-933"},
    {"x-IBM935", "CP935", "cp935 ibm935 935 ibm-935"},
    {"x-IBM937", "IBM-937", "ibm-937 ibm937 937 cp937"},
    {"x-IBM939", "IBM-939", "ibm-939 cp939 ibm939 939"},
    {"x-IBM942C", "CP932", "ibm932 x-ibm932 ibm-932 ibm942C ibm-942C 942C 932 cp942C cp932"},
    {"x-IBM943", "IBM943", "ibm943 943 ibm-943 cp943"},
    {"x-IBM949", "CP949", "ibm-949 ibm949 949 cp949"},
    {"x-IBM950", "CP950", "cp950 ibm950 950 ibm-950"},
    {"x-iso-8859-11", "ISO-8859-11", "iso-8859-11 iso8859_11"},
    {"x-Johab", "JOHAB", "ms1361 ksc5601_1992 johab ksc5601-1992"},
    {"x-MacCyrillic", "MACCYRILLIC", "MacCyrillic"},
    {"x-mswin-936", "MS936", "ms936 ms_936"},
    {"x-windows-874", "WINDOWS-874", "ms-874 ms874 windows-874"},
};

static bool is_one_of(const char *list, const char *name)
{
    size_t len = strlen(name);

    while (*list != '\0') {
        size_t word = strcspn(list, " ");

        if (word == len && strncasecmp(list, name, len) == 0)
            return true;
        list += word + (list[word] == ' ');
    }
    return false;
}

const char *charset_names_find(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(names[i].java, name) == 0 || is_one_of(names[i].aliases, name))
            return names[i].iconv;
    return NULL;
}
